"""`flydsl.expr.rocdl.cdna5`: gfx1250."""

__all__: list[str] = []

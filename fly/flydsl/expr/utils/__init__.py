"""`flydsl.expr.utils`."""

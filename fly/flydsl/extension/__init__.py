"""`flydsl.extension`: libraries on top of `flydsl.expr`, with a target's own forms."""

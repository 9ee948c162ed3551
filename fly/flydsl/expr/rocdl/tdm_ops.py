"""`flydsl.expr.rocdl.tdm_ops`: the tensor data mover of gfx1250."""

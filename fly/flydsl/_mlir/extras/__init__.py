"""`flydsl._mlir.extras`."""

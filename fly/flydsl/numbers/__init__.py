"""Numbers as FlyDSL has them: promotion, operators, conversions, and values of raw MLIR."""

"""MLIR as FlyDSL has it: the bindings that this project uses, for values of a traced program."""

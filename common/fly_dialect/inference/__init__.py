"""How result types follow from operand types, an op's rule a function."""

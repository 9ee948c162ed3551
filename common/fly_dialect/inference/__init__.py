"""Type inference: one function per op, from operand types to result types."""

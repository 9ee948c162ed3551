"""Insertions into code generation: MIR filters and native passes."""

"""The host side of a program: the launch plan, and the interpreter of its expressions."""

"""Mutation of the emulator: each semantic function is damaged, and the tests must notice."""

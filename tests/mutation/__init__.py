"""Mutation of the emulator: each semantic function is mutated, and the tests must detect it."""

"""Comparisons of the oracle with the emulator."""

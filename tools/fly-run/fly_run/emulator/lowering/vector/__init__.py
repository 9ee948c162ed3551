"""Lowers vector instructions: one operation, several, conversions, moves between lanes."""

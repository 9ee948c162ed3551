"""Fuzzing of every tool: a mutated input must give a result or a proper error line."""

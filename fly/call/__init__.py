"""Calls of `@fly.jit` functions: arguments, arrays, compiled functions."""

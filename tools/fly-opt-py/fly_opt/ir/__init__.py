"""Utilities that passes build IR with: operations, pointers, vectors, integers."""

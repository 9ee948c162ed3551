"""Lowers loads, stores and atomics, and what LDS does beside them."""

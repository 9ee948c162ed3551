"""Attention: forward, gradients, packed sequences, and decoding from pages of keys."""

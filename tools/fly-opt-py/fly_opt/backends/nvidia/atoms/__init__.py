"""Emitters of NVIDIA's instructions."""

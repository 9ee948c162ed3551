"""NVIDIA's images: PTX text."""

"""What NVIDIA's GPUs add to the dialect."""

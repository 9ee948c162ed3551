"""Instructions of NVIDIA's GPUs."""

"""Random calls of `fly.kernels`, judged by torch: see docs/testing.md."""

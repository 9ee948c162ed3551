"""What `fly.kernels` is measured beside: torch's attention, Triton's scaled products."""

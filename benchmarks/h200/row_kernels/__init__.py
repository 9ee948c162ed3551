"""The kernels of rows of `fly.kernels` at many widths: cases, plans to try, images, peers."""

"""A trace: the builder, kernels and their launches, the user's file."""

"""A program and values → buffers, launches and the bytes of their arguments; and running them."""

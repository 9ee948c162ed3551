"""Which mathematical function is computed how."""

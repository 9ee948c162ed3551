"""The runtime that rewritten Python calls in place of its control flow."""

"""Damaged inputs for every tool: each must end with a result or with an error line of its own."""

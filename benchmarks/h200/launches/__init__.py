"""Launches: what one costs on the host, and chains of dependent ones."""

"""Kills processes that write to one store, and checks that it stays consistent."""

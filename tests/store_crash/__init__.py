"""Kills processes that write to one store, and looks whether it stays whole."""

"""Devices: the protocol, their options, and the registry that opens them."""

"""Devices: the protocol, their options, and the table by which they are opened."""

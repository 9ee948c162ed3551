"""The host function becomes the host program."""

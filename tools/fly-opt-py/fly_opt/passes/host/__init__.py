"""The host function becomes the launch plan."""

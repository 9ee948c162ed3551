"""What all the tools share."""

__version__ = "0.1.0"

"""Vector ALU operations."""

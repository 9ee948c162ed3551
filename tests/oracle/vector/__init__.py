"""Vector ALU instructions."""

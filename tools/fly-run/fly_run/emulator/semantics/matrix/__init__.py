"""Matrix instructions."""

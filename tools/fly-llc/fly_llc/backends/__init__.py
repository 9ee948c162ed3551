"""What a backend adds to fly-llc."""

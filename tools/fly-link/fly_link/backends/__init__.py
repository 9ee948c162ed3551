"""What a backend adds to fly-link."""

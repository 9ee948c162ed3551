"""fly-run: code objects → results, on a device."""

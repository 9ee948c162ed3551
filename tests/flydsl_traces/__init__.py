"""FlyDSL's traces through the pipe: see scripts/flydsl-traces."""

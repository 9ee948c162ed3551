"""What only AMD's targets have: `fx.rocdl`."""

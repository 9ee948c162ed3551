"""The AMD backend of the language: `fx.rocdl`."""

"""AMD's code objects."""

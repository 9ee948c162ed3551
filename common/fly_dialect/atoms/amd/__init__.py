"""AMD's copy and matrix instructions as types."""

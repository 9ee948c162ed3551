"""What only AMD's machine instructions have: their registers, kinds and waits."""

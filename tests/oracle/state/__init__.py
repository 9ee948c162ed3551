"""What instructions read and write: registers, memory, modes; and how a wave starts."""

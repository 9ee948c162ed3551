"""The state of waves: registers, memory, modes; and its initialisation."""

"""A second, independent reading of the gfx9 ISA: what the emulator is judged by. See machine.py."""

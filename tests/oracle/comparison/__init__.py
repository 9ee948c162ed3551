"""What is compared of the oracle and the emulator."""

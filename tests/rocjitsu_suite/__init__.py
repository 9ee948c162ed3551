"""Cases of tests/kernels on two emulators: `scripts/against-rocjitsu` compares them."""

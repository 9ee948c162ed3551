"""Support for the tests of the emulator: builds kernels from text and launches them."""

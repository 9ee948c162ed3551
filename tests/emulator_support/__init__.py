"""What the tests of the emulator share: kernels from text, launched on it."""

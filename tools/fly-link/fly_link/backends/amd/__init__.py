"""The AMD backend of fly-link: objects → HSACO by LLVM's `ld.lld`."""

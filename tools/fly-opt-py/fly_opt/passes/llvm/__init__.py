"""Conversion of the fly dialect to LLVM's."""

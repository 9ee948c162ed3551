"""Emitters of AMD's instructions as ops of the rocdl and LLVM dialects."""

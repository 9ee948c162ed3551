"""AMD's instructions in ops of the rocdl and LLVM dialects."""

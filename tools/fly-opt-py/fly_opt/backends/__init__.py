"""The backends' parts of fly-opt-py: pipelines, passes, instruction emitters, LLVM modules."""

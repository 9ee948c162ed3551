"""What a backend adds to fly-opt-py: pipelines, passes, emitters of instructions, LLVM modules."""

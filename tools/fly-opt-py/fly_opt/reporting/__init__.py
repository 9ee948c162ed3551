"""What fly-opt-py tells people: MLIR's diagnostics, dumps between passes, times, suggestions."""

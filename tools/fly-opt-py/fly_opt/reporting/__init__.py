"""Output for users: MLIR's diagnostics, dumps between passes, timings, suggestions."""

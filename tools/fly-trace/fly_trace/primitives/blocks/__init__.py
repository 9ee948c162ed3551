"""Primitives of a block's threads: reductions, scans, exchanges, loads and stores."""

"""Primitives of waves and blocks, and random numbers: `fx.warp`, `fx.block`, `fx.random`.

They are written in the language itself: their functions are traced like the user's, but errors and
line tables name the user's call (`core.locations.is_traced`). A trace does not know the lanes of a
wave, so code for those beyond the first 32 is under `if fx.num_warp_threads() > 32:`, which folds
once the target is known.
"""

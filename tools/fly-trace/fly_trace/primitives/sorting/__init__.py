"""Sorting of a wave's or a block's items, and the greatest of them."""

"""Integer tuples, layouts, tiles and views of the language."""

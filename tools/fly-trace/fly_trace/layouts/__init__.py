"""Integer tuples, layouts, tiles and views while tracing."""

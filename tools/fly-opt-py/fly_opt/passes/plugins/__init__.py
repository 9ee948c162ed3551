"""Passes that pipelines with plugins have besides those of the plugins."""

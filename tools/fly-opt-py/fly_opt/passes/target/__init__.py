"""Passes that set the module's target and use its wave size."""

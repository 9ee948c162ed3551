"""`python -m fly.plugins new NAME` makes a plugin from the template, examples/plugins/hello."""

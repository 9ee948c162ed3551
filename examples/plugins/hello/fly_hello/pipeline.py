"""What runs at the plugin's slot: the text of a pipeline, from the options."""


def lower(options):
    return f"hello-lower{{factor={options.factor}}}"

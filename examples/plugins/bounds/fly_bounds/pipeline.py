"""What runs at the plugin's slots: pipelines' text, from the options."""


def mark(options):
    """Before layouts are lowered: coordinates and shapes are there."""
    return f"{'bounds-coordinates,' if options.axes else ''}bounds-extents"


def check(options):
    """Pointers and the target's instructions are there."""
    return f"bounds-check{{buffers={options.buffers}}}"

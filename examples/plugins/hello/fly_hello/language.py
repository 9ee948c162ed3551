"""What kernels see as `fx.hello`."""

from fly_trace.values.plugin_ops import build


def scale(x):
    """x times the factor of the compilation, `--hello-factor`."""
    return build("hello.scale", x)

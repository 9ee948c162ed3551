"""What needs a package that is not required is collected where that is installed."""

from importlib.util import find_spec

_WITH_TORCH = (
    "test_torch.py",
    "native/test_guards.py",
    "native/test_launchers.py",
    "native/test_prepared.py",
)
collect_ignore = [] if find_spec("torch") else list(_WITH_TORCH)

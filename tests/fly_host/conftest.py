"""What needs a package that is not required is collected where that is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["test_torch.py"]

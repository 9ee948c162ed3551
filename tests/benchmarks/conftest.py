"""The benchmarks on GPUs are beside torch: their tests are collected where it is installed."""

from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("torch") else ["test_h200.py", "test_h200_library.py", "test_kernels.py"]
)

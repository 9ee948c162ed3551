"""Starts the runtime in the process that has loaded the library.

The library holds this file's text and executes it at the first call of a HIP function, in the
Python of that process. This Python need not have fly-run: `roots` are the folders that have the
packages named here, and only these packages are found there. fly-run's own come from `roots` even
if the process has others, because they belong to the library.
"""

OWN = frozenset(
    [
        "fly_backend",
        "fly_common",
        "fly_host",
        "fly_image",
        "fly_numerics",
        "fly_plugin",
        "fly_run",
        "fly_store",
        "fly_target",
    ]
)
OTHERS = frozenset(["elftools", "filelock", "msgpack"])


def start(table, state, exports, digest, roots):
    """Fills the table of functions at address `table`. `state` and `exports` are the addresses of
    the library's state and of the table of what it exports, `digest` identifies the interface that
    it was built for."""
    import sys
    from importlib.machinery import PathFinder

    if sys.version_info < (3, 11):  # noqa: UP036 - the program may have an older Python
        raise ImportError("fly-run's emulator needs Python 3.11 or newer")

    class Finder:
        def __init__(self, names):
            self.names = names

        def find_spec(self, name, path=None, target=None):
            if path is None and name in self.names:
                return PathFinder.find_spec(name, roots, target)
            return None

    sys.meta_path.insert(0, Finder(OWN))
    sys.meta_path.append(Finder(OTHERS))
    from fly_run.hip_runtime import table as functions

    functions.fill(table, state, exports, digest)

"""Imported by the processes that a judging test starts.

With FLY_MUTANT=MODULE=FILE, MODULE is loaded from FILE. With FLY_MUTATION_RECORD=FOLDER, a process
records there, when it ends, which lines of the files in FOLDER/files it has executed.
"""

import os
import sys


def _damage(module: str, file: str) -> None:
    import importlib.machinery

    class Loader(importlib.machinery.SourceFileLoader):
        def get_code(self, fullname):
            with open(file, encoding="utf-8") as damaged:
                return compile(damaged.read(), self.path, "exec", dont_inherit=True)

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != module:
                return None
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            if spec is not None and spec.origin:
                spec.loader = Loader(name, spec.origin)
            return spec

    sys.meta_path.insert(0, Finder)


def _record(folder: str) -> None:
    import atexit

    with open(os.path.join(folder, "files"), encoding="utf-8") as listed:
        files = set(listed.read().splitlines())
    seen: set[tuple[str, int]] = set()

    def line(frame, event, _):
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame, event, _):
        return line if frame.f_code.co_filename in files else None

    def write() -> None:
        sys.settrace(None)
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        with open(os.path.join(folder, f"{os.getpid()}.lines"), "a", encoding="utf-8") as file:
            file.writelines(f"{test}\t{path}\t{number}\n" for path, number in seen)

    atexit.register(write)
    import threading

    threading.settrace(call)
    sys.settrace(call)


if mutant := os.environ.get("FLY_MUTANT"):
    _damage(*mutant.split("=", 1))
if recording := os.environ.get("FLY_MUTATION_RECORD"):
    _record(recording)

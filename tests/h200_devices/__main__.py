"""Runs the checks, each named, and prints a line for each."""

from __future__ import annotations

import sys
import time
import traceback

from h200_devices import graphs, images, on_host, on_tensors


def main(names: list[str]) -> int:
    every = {**on_host.CHECKS, **on_tensors.CHECKS, **graphs.CHECKS, **images.CHECKS}
    unknown = [name for name in names if name not in every]
    if unknown:
        print(f"no such check: {', '.join(unknown)}; there are {', '.join(every)}")
        return 2
    failed = 0
    for name in names or every:
        start = time.perf_counter()
        try:
            told = every[name]() or ""
            word = "ok  "
        except Exception as error:
            traceback.print_exc()
            failed += 1
            word, told = "FAIL", f"{type(error).__name__}: {str(error).splitlines()[0]}"
        print(f"{word} {name:<22} {time.perf_counter() - start:6.2f} s  {told}", flush=True)
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Random calls of fly.kernels on the emulator, judged by torch in f64.

    PYTHONPATH=tests python -m kernel_cases                               1,000 calls, for gfx942
    PYTHONPATH=tests python -m kernel_cases --cases 300 --seed 7 --target gfx1201
    PYTHONPATH=tests python -m kernel_cases --only 'conv|moe' --strict 0.2
    PYTHONPATH=tests python -m kernel_cases --seed 7 --again 81           one call again

A call has random shapes, types, strides and options, with numbers that are NaN or infinite where
functions define what becomes of them. Compared are results, or gradients of some arguments;
with the fake kernel types, shapes and strides. What lies beside the arguments in memory is NaN.
The share --strict of the calls runs in strict mode. Exit status 1 if a call is wrong.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
import time
import traceback
from collections.abc import Callable

from kernel_cases import attention, products, rows, vectors
from kernel_cases.case import Case, run, ways
from kernel_cases.choice import Choice

TOLD = 20  # wrong calls that are printed
STRICT_ELEMENTS = 600  # of all arguments, of a call in strict mode
MAKERS: dict[str, Callable[..., Case]] = {
    f"{module.__name__.rpartition('.')[2]}.{function.__name__}": function
    for module, functions in (
        (rows, (rows.softmax, rows.norm, rows.quantized, rows.cross_entropy, rows.top_k)),
        (vectors, (vectors.prefix_sum, vectors.histogram, vectors.dropout)),
        (
            products,
            (
                products.matmul,
                products.eight_bits,
                products.preshuffled,
                products.grouped,
                products.route,
                products.mixture,
                products.sort,
                products.convolution,
            ),
        ),
        (
            attention,
            (
                attention.flash,
                attention.packed,
                attention.paged,
                attention.rotary,
                attention.rotary_and_cache,
            ),
        ),
    )
    for function in functions
}


def wrong(seed: int, number: int, names: list[str], target: str, strict: float) -> str | None:
    """What is wrong with a call."""
    choice = Choice(f"{seed}:{number}")
    maker = MAKERS[names[number % len(names)]]
    case = way = None
    try:
        case = (
            maker(choice, target)
            if "target" in inspect.signature(maker).parameters
            else maker(choice)
        )
        way = ways(choice, case)
        small = sum(one.numel() for one in case.arguments) <= STRICT_ELEMENTS
        os.environ["FLY_STRICT"] = str(int(small and choice.chance(strict)))
        run(choice, case, way)
    except Exception as error:
        if os.environ.get("FLY_DEBUG") == "1":
            traceback.print_exc()
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return f"{case or maker.__name__} ({way}): {said}"
    finally:
        os.environ["FLY_STRICT"] = "0"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="kernel_cases", description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="gfx942")
    parser.add_argument("--only", default="", metavar="REGEX", help="kernels that match")
    parser.add_argument("--strict", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--again", type=int, metavar="NUMBER", help="this call alone")
    wanted = parser.parse_args()
    os.environ.update(FLY_TARGET=wanted.target, FLY_DEVICE="emulator")
    names = [name for name in MAKERS if re.search(wanted.only, name)]
    numbers = range(wanted.cases) if wanted.again is None else [wanted.again]
    started, found = time.monotonic(), 0
    for number in numbers:
        said = wrong(wanted.seed, number, names, wanted.target, wanted.strict)
        if said is None:
            continue
        found += 1
        if found <= TOLD:
            again = f"--seed {wanted.seed} --again {number}"
            again += f" --only {wanted.only!r}" if wanted.only else ""
            print(f"kernel_cases: {wanted.target} {again}: {said[:1500]}", flush=True)
    took = time.monotonic() - started
    print(f"kernel_cases: {wanted.target}: {len(numbers)} calls, {found} wrong ({took:.0f} s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

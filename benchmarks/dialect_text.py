"""Time to read and write FlyDSL's text, by lines: the lexer alone, and with MLIR.

    python benchmarks/dialect_text.py [--runs 7] [--lines 500,5000,50000]

The lexer is linear: ten times the lines take ten times as long.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from fly_dialect import text
from fly_dialect.bindings import ir

HEAD = "func.func @f(%m: !fly.memref<f32, global, (4,?{i64}):(?{i64},1)>, %i: i32) {\n"
LINES = (
    "  %c{0} = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(2,?)>\n"
    "  %v{0} = fly.memref.load(%m, %c{0}) : (!fly.memref<f32, global, (4,?{{i64}}):(?{{i64}},1)>,"
    " !fly.int_tuple<(2,?)>) -> f32\n"
)


def median_ms(work: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="runs per figure")
    parser.add_argument("--lines", default="500,5000,50000", help="sizes, separated by commas")
    options = parser.parse_args()
    runs = options.runs
    print(f"lines   lexer ms   read ms   write ms   (median of {runs})")
    for count in map(int, options.lines.split(",")):
        source = HEAD + "".join(LINES.format(n) for n in range(count // 2)) + "  return\n}\n"
        context = ir.Context()
        module = text.read(source, context)
        lexer = median_ms(lambda source=source: text.to_generic(source).finish(), runs)
        read = median_ms(lambda source=source: text.read(source, ir.Context()), runs)
        write = median_ms(lambda module=module: text.write(module, False), runs)
        print(f"{count:6,} {lexer:9.1f} {read:9.1f} {write:10.1f}")


if __name__ == "__main__":
    main()

"""Overhead of source locations while tracing: an unrolled kernel of about 2,000 ops.

    python benchmarks/trace_locations.py [--runs 15]

Prints the median tracing time with captured locations and with a single unknown location for every
op, and the difference as a percentage of the total.
"""

import argparse
import statistics
import time

from fly_dialect.bindings import ir
from fly_trace.session import op_locations
from fly_trace.session.trace import trace_function

import fly
import fly.expr as fx

STEPS = 150


@fly.kernel
def unrolled_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.thread_idx.x
    total = fx.Float32(0)
    for k in fx.range_constexpr(STEPS):
        a = A[i * STEPS + k]
        total = total + a * a - fx.exp(a) / (a + 1.0)
    B[i] = total


@fly.jit
def unrolled(A: fx.Tensor[fx.Float32, None], B: fx.Tensor[fx.Float32, None]):
    unrolled_kernel(A, B).launch(grid=1, block=64)


def once() -> float:
    start = time.perf_counter()
    trace_function(unrolled, {}, locations=False)
    return time.perf_counter() - start


def count_ops() -> int:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        from fly_dialect import text

        module = text.read(trace_function(unrolled, {}, locations=False), context)
        found = []
        module.operation.walk(lambda op: found.append(op) or ir.WalkResult.ADVANCE)
        return len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="traces per figure")
    options = parser.parse_args()
    ops = count_ops()
    captured = op_locations.Locations.here
    with_locations, without = [], []
    for _ in range(options.runs):
        # Alternate, so that other load slows both alike.
        with_locations.append(once())
        op_locations.Locations.here = lambda self: self.unknown
        without.append(once())
        op_locations.Locations.here = captured
    slow, fast = statistics.median(with_locations), statistics.median(without)
    print(f"{ops} ops: {slow * 1e3:.1f} ms traced with locations, {fast * 1e3:.1f} ms without")
    print(f"locations: {max(0.0, slow - fast) / slow:.1%} of tracing")


if __name__ == "__main__":
    main()

"""Random chains of split, merge, reorder, broadcast and expand, each judged by all that can judge.

    PYTHONPATH=tests python -m host_chains                          20,000 chains
    PYTHONPATH=tests python -m host_chains --chains 1000 --seed 7
    PYTHONPATH=tests python -m host_chains --seed 7 --again 81      one chain again

Every fourth chain has extents beyond 2^31, which torch judges; the others are enumerated too. The
expressions of all chains are compiled, some hundreds at once. Exit status 1 if there is a
difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from host_chains.chain import Chain, Choice, random_chain
from host_chains.judge import differences
from host_chains.native_code import Batch
from host_chains.readers import READERS

TOLD = 10  # differences that are printed


def made(seed: int, number: int) -> tuple[Chain, Choice]:
    choice = Choice.of_seed(f"{seed}:{number}")
    return random_chain(choice, large=number % 4 == 3), choice


def judged(seed: int, numbers: Sequence[int]) -> Iterator[str]:
    """The differences of these chains, each behind the options that repeat it. What native code
    says comes later than the rest."""
    native = Batch(each=len(numbers) == 1)
    for number in numbers:
        chain, choice = made(seed, number)
        again = f"--seed {seed} --again {number}: "
        native.about = f"{again}{chain}: "
        for text in differences(chain, choice, [*READERS, native]):
            yield f"{again}{text}"
        yield from native.differences(all=False)
    yield from native.differences()


def main() -> int:
    parser = argparse.ArgumentParser(prog="host_chains", description=__doc__.split("\n")[0])
    parser.add_argument("--chains", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=int, metavar="NUMBER", help="this chain alone")
    wanted = parser.parse_args()
    numbers = [*range(wanted.chains)] if wanted.again is None else [wanted.again]
    started, wrong = time.monotonic(), 0
    for text in judged(wanted.seed, numbers):
        wrong += 1
        if wrong <= TOLD:
            print(f"host_chains: {text}", flush=True)
    took = time.monotonic() - started
    print(f"host_chains: {len(numbers)} chains, {wrong} differences ({took:.0f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

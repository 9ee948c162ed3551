"""Random chains of split, merge, reorder, broadcast and expand, each judged by all that can judge.

    PYTHONPATH=tests python -m host_chains                          20,000 chains
    PYTHONPATH=tests python -m host_chains --chains 1000 --seed 7
    PYTHONPATH=tests python -m host_chains --seed 7 --again 81      one chain again

Every fourth chain has extents beyond 2^31, which torch judges; the others are enumerated too. Exit
status 1 if there is a difference.
"""

from __future__ import annotations

import argparse
import sys
import time

from host_chains.chain import Chain, Choice, random_chain
from host_chains.judge import differences

TOLD = 10  # differences that are printed


def made(seed: int, number: int) -> tuple[Chain, Choice]:
    choice = Choice.of_seed(f"{seed}:{number}")
    return random_chain(choice, large=number % 4 == 3), choice


def main() -> int:
    parser = argparse.ArgumentParser(prog="host_chains", description=__doc__.split("\n")[0])
    parser.add_argument("--chains", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=int, metavar="NUMBER", help="this chain alone")
    wanted = parser.parse_args()
    numbers = range(wanted.chains) if wanted.again is None else [wanted.again]
    started, wrong = time.monotonic(), 0
    for number in numbers:
        for text in differences(*made(wanted.seed, number)):
            wrong += 1
            if wrong <= TOLD:
                print(f"host_chains: --seed {wanted.seed} --again {number}: {text}", flush=True)
    took = time.monotonic() - started
    print(f"host_chains: {len(numbers)} chains, {wrong} differences ({took:.0f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

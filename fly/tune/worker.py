"""A process that compiles: requests on standard input, one byte on standard output for each.

    python -m fly.tune.worker

A request is a pickled pair: the arguments of `fly.chain`, and a traced module. What the stages
make is put into the content store, where the parent finds it. Errors and warnings are not reported:
the parent runs the same chain, finds what there is, and meets the same error at the same stage. The
process ends with its standard input, that is, with its parent at the latest.
"""

from __future__ import annotations

import contextlib
import pickle
import sys

READY = b"."


def serve() -> None:
    from fly_common.errors import FlyError

    import fly
    from fly.chains import messages

    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            recipe, module = pickle.load(requests)
        except EOFError:
            return
        with messages.collected(), contextlib.suppress(FlyError):
            fly.run(fly.chain(**recipe), module)
        replies.write(READY)
        replies.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve()

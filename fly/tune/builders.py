"""Compiling side by side: processes that put results into the content store.

    with Builders(count) as builders:
        done = builders.start(recipe, module)
        …
        done.result()       now the store has what could be made

Functions are traced in the application's process, so they may be defined anywhere; only the traced
module goes to a worker (`fly.tune.worker`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fly_store.store import default_store, key_of

from fly.chains.chain import Chain


def available() -> int:
    """The number of processes to compile in; 0 where they are of no use: without a store, and in an
    application whose `sys.executable` is not Python."""
    is_python = os.path.basename(sys.executable or "").startswith("python")
    if default_store().folder is None or not is_python:
        return 0
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stored(chain: Chain, module: bytes) -> bool:
    """Whether the store has the results of all stages."""
    store, data = default_store(), module
    for stage in chain:
        found = store.get(key_of(stage.identity(), data))
        if found is None:
            return False
        data = found
    return True


class Builders:
    """At most `count` worker processes. They are started when there is work for them, and killed,
    with what they run, at the end of the block."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(max(1, count), thread_name_prefix="fly-tune")
        self._here = threading.local()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._closing = False
        self._lock = threading.Lock()

    def __enter__(self) -> Builders:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closing = True
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            for stream in (worker.stdin, worker.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            worker.wait()

    def start(self, recipe: Mapping[str, Any], module: bytes) -> Future[None]:
        """Has a worker compile a module with the chain `fly.chain(**recipe)`."""
        return self._threads.submit(self._build, dict(recipe), module)

    def _build(self, recipe: dict[str, Any], module: bytes) -> None:
        worker = getattr(self._here, "worker", None)
        try:
            if worker is None:
                worker = self._here.worker = self._new()
            if worker is not None:
                assert worker.stdin is not None
                assert worker.stdout is not None
                pickle.dump((recipe, module), worker.stdin)
                worker.stdin.flush()
                worker.stdout.read(1)
        except OSError:  # it ended, or can't be started: the application compiles
            self._here.worker = None

    def _new(self) -> subprocess.Popen[bytes] | None:
        """Starts a worker in a session of its own, which an interrupt at the terminal does not
        reach."""
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with self._lock:
            if self._closing:
                return None
            worker = subprocess.Popen(
                [sys.executable, "-m", "fly.tune.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path},
            )
            self._workers.append(worker)
            return worker

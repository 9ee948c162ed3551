"""The handlers that only one target has, found by lowering every form of its instructions."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fly_common import paths
from fly_common.errors import InputError
from fly_run.emulator import coverage
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Allocation, Constants, Registers
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.operation import Operation
from fly_store import identity
from fly_target import registry

from mutation.handlers import Handlers

# Forms that differ from those of `coverage` in a number only: barriers of clusters, named ones.
MORE = (
    *("s_barrier_signal -3", "s_barrier_signal_isfirst -3", "s_barrier_wait 0xfffd"),
    *("s_barrier_signal 1", "s_barrier_signal_isfirst 1", "s_barrier_wait 0x1"),
    *("s_barrier_signal_isfirst -1",),
)


def handlers(target: str) -> frozenset[str]:
    """Returns the names of the handlers of `target` that no other emulated target has; kept in the
    cache until the emulator or LLVM changes."""
    kept = Path(paths.cache_dir()) / f"own-{target}-{_digest()}.json"
    if kept.is_file():
        return frozenset(json.loads(kept.read_text()))
    # Targets with the same traits have the same instructions. A process each: enumerating the
    # encodings of one takes ten seconds and more.
    distinct = {registry.find(name).traits: name for name in registry.EMULATED if name != target}
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        found, *others = processes.map(_used, [target, *distinct.values()])
    own = sorted(_own(target, found, set().union(*others)))
    kept.parent.mkdir(parents=True, exist_ok=True)
    made = kept.with_suffix(f".{os.getpid()}")
    made.write_text(json.dumps(own))
    made.replace(kept)
    return frozenset(own)


def _own(target: str, used: set[str], others: set[str]) -> Iterator[str]:
    """Yields the handlers of operations that only the target has, and those of kinds of operands
    that only it has. The forms that are tried don't have all handlers: which of an operation's are
    used is partly chance."""
    named = list(table.operations_of(target).values())
    kinds = {
        _kind(operation, one) for operation in named for one in operation.handlers if one in others
    }
    for operation in dict.fromkeys(named):
        shared = not others.isdisjoint(operation.handlers)
        if not used.isdisjoint(operation.handlers):
            for handler in operation.handlers:
                if not shared or _kind(operation, handler) not in kinds:
                    yield handler


def _kind(operation: Operation, handler: str) -> tuple[str, str]:
    return operation.form, handler.removeprefix(operation.name)


def _digest() -> str:
    """The digest of what the result depends on: the sources of the emulator and of the targets."""
    digest = hashlib.sha256(identity.program("llc").encode())
    digest.update(Path(__file__).read_bytes())
    for folder in (Path(coverage.__file__).parent, Path(registry.__file__).parent):
        for source in sorted(folder.rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:32]


def _used(target: str) -> set[str]:
    row, operations = registry.find(target), table.operations_of(target)
    registers = Registers(Allocation(256, 256, 256, 512), Constants(0, 1 << 26), row, row.wave_size)
    known = {name: 1 for operation in table.operations().values() for name in operation.handlers}
    recorded = Handlers(known)
    texts = [form for forms in coverage.universe(target).values() for form in forms]
    texts += [(text, bytes(4)) for text in MORE]
    with recorded.recording() as used:
        for text, code in texts:
            try:
                encoder = Encoder(registers, operations, recorded, null_region=0)
                encoder.encode({0: parse(text, 0, len(code))}, text)
            except InputError:
                continue
    return used

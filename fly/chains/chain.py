"""The chain from MLIR to a code object, as data: a tuple of stages that anybody may change.

    chain = fly.chain(target="gfx942")                     opt-py → opt → llc → link
    chain = chain.replace("opt", fly.Stage.command(["opt", "-S", "-O1"], suffix=".opt.ll"))
    chain = chain.without("opt")
    hsaco = fly.run(chain, mlir)

Each stage's result is in the content store under its fingerprint and its input: a stage that
changes makes itself and those behind it run again, and no other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from fly_common import prefetch
from fly_common.errors import FlyError, InputError, UsageError
from fly_common.quoting import quoted
from fly_store import identity
from fly_store.store import Store, default_store, key_of

from fly.chains.stage import Stage

SOURCE_SUFFIX = ".mlir"  # of what goes into a chain


@dataclass(frozen=True)
class Chain:
    """`stages` in the order they run; `target` is the GPU that the first of them was told."""

    target: str
    stages: tuple[Stage, ...]

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def replace(self, name: str, stage: Stage) -> Chain:
        """With `stage` where the stage `name` was."""
        at = self._index(name)
        return self._with((*self.stages[:at], stage, *self.stages[at + 1 :]))

    def without(self, name: str) -> Chain:
        at = self._index(name)
        return self._with(self.stages[:at] + self.stages[at + 1 :])

    def insert_before(self, name: str, stage: Stage) -> Chain:
        at = self._index(name)
        return self._with((*self.stages[:at], stage, *self.stages[at:]))

    def insert_after(self, name: str, stage: Stage) -> Chain:
        at = self._index(name) + 1
        return self._with((*self.stages[:at], stage, *self.stages[at:]))

    def with_lines(self) -> Chain:
        """The same chain, with source lines in what it makes where its stages know how."""
        made = (stage.with_lines() if stage.with_lines else stage for stage in self.stages)
        return self._with(tuple(made))

    @functools.cached_property
    def settled(self) -> bool:
        """Whether its identity changes with LLVM's own files and nothing else."""
        return all(stage.settled or isinstance(stage.fingerprint, str) for stage in self.stages)

    def identity(self) -> tuple[str, ...]:
        """The stages' fingerprints as they are now."""
        return tuple(stage.identity() for stage in self.stages)

    def _with(self, stages: tuple[Stage, ...]) -> Chain:
        return replace(self, stages=stages)

    def _index(self, name: str) -> int:
        names = [stage.name for stage in self.stages]
        if name not in names:
            raise UsageError(
                f"the chain has no stage {quoted(name)}", hint=f"its stages are {', '.join(names)}"
            )
        return names.index(name)


def chain(
    target: str | None = None,
    *,
    opt: Sequence[str] | None = ("-S", "-O3"),
    opt_py: Sequence[tuple[str, object]] = (),
    llc: Sequence[tuple[str, object]] = (),
) -> Chain:
    """The default chain: `fly-opt-py --target TARGET | opt -S -O3 | fly-llc | fly-link`.

    `target` None is `FLY_TARGET`, else gfx942. `opt` holds opt's arguments, None leaves it out.
    `opt_py` and `llc` set options of these stages by name, as (name, value) pairs of the fields of
    `fly_opt.pipeline.options.Options` and `fly_llc.codegen.options.Options`.
    """
    from fly.chains import builtin as stages

    target = target or stages.default_target()
    made = [
        stages.opt_py(target, dict(opt_py)),
        *([] if opt is None else [Stage.command(["opt", *opt], suffix=".opt.ll")]),
        stages.llc(dict(llc), target),
        stages.link(),
    ]
    return Chain(target, tuple(made))


def run(
    chain: Chain, data: bytes, store: Store | None = None, prefetch: Prefetch | None = None
) -> bytes:
    """What the whole chain makes of `data`."""
    for _, made in results(chain, data, store, prefetch):
        data = made
    return data


def results(
    chain: Chain, data: bytes, store: Store | None = None, prefetch: Prefetch | None = None
) -> Iterator[tuple[Stage, bytes]]:
    """Runs stage after stage, or finds in the store (`default_store()` if None) what it makes;
    yields each with its result. `prefetch` holds what was started ahead for this chain already."""
    store = store or default_store()
    suffix = SOURCE_SUFFIX
    with prefetch or Prefetch(chain) as programs:
        for number, stage in enumerate(chain):
            data = _result(
                stage, data, suffix, store, functools.partial(programs.start, number + 1)
            )
            suffix = stage.suffix
            yield stage, data


class Prefetch:
    """The programs of a chain's later stages, started when an earlier one has to work: then those
    most likely have to as well. So does what takes long of their fingerprints."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._programs = prefetch.Programs()
        self._started = False

    def __enter__(self) -> Prefetch:
        return self

    def __exit__(self, *_: object) -> None:
        self._programs.kill()

    def start(self, first: int = 0) -> None:
        """Starts what the stages from `first` on will run, the first time it is called."""
        if self._started:
            return
        self._started = True
        for stage in self._chain.stages[first:]:
            try:
                command = stage.ahead() if stage.ahead else None
            except FlyError:
                continue  # the stage itself will say what is missing
            if command is not None:
                identity.program_ahead()
                self._programs.start([command])


def _result(
    stage: Stage, data: bytes, suffix: str, store: Store, working: Callable[[], None]
) -> bytes:
    """The stage's result; `working` is called before it is made, not where it is found."""
    identity = stage.identity()

    def make() -> bytes:
        working()
        return _work(stage, data, suffix)

    return store.obtain(
        key_of(identity, data),
        make,
        label=stage.name,
        suffix=stage.suffix,
        # A program that was replaced while it ran made something that has no name.
        valid=lambda: stage.identity() == identity,
        origin=(identity, data),
    )


def _work(stage: Stage, data: bytes, suffix: str) -> bytes:
    """Runs a stage. Where it refuses its input, that is kept, and the error says how to repeat."""
    try:
        made = stage.run(data)
    except InputError as error:
        from fly_common.filter import save_failed_input

        kept = save_failed_input(stage.name, data, suffix)
        if kept and stage.words:
            import shlex

            words = [str(kept) if word == "{input}" else word for word in stage.words]
            again = f"reproduce: {shlex.join(words)} < {shlex.quote(str(kept))}"
            error.hint = f"{error.hint}\n  {again}" if error.hint else again
        raise
    if not isinstance(made, bytes):
        raise UsageError(
            f"stage {stage.name} returned {type(made).__name__}, but must return bytes"
        )
    return made

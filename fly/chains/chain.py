"""The chain from MLIR to an image: an immutable sequence of stages.

    chain = fly.chain(target="gfx942")                     opt-py → opt → llc → link
    chain = chain.replace("opt", fly.Stage.command(["opt", "-S", "-O1"], suffix=".opt.ll"))
    chain = chain.without("opt")
    image = fly.run(chain, mlir)

The content store keeps each stage's result under the stage's fingerprint and its input. A change of
one stage reruns that stage and the stages after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fly_common.errors import FlyError, InputError, UsageError
from fly_common.programs import prefetch
from fly_common.quoting import quoted
from fly_common.record import record, replace
from fly_plugin import requested
from fly_store import identity
from fly_store.store import Store, default_store, key_of

from fly.chains.stage import Stage

if TYPE_CHECKING:
    from fly_plugin.activation import Active

    from fly.chains.tuning import Tuning

SOURCE_SUFFIX = ".mlir"  # the suffix of a chain's input


@record
class Chain:
    """`stages` are in the order they run. `target` is the GPU that the first stage compiles for,
    `backend` the backend whose stages they are; None is that of the target. `plugins` are active in
    the stages, and while a function that has this chain is traced."""

    target: str
    stages: tuple[Stage, ...]
    backend: str | None = None
    plugins: tuple[Active, ...] = ()

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def replace(self, name: str, stage: Stage) -> Chain:
        """Returns a chain with `stage` in place of the stage `name`."""
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
        """Returns the chain with source lines in its output, for the stages that support them."""
        made = (stage.with_lines() if stage.with_lines else stage for stage in self.stages)
        return self._with(tuple(made))

    @functools.cached_property
    def settled(self) -> bool:
        """Whether the identity depends on nothing that may change except LLVM's own files."""
        return all(stage.settled or isinstance(stage.fingerprint, str) for stage in self.stages)

    def identity(self) -> tuple[str, ...]:
        """Returns the current fingerprints of the stages."""
        return tuple(stage.identity() for stage in self.stages)

    def trace_identity(self) -> str:
        """Identifies what the plugins do while a function is traced; "" without plugins."""
        if not self.plugins:
            return ""
        from fly.chains.plugins import trace_identity

        return trace_identity(self.plugins)

    def variables(self) -> tuple[str, ...]:
        """Returns the environment variables that the plugins read."""
        if not self.plugins:
            return ()
        from fly.chains.plugins import variables

        return variables(self.plugins)

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
    link: Sequence[tuple[str, object]] = (),
    backend: str | None = None,
    arch: str | None = None,
    chip: str | None = None,
    plugins: Sequence[object] = (),
) -> Chain:
    """Returns the default chain: `fly-opt-py --target TARGET | opt -S -O3 | fly-llc | fly-link`.

    `target` defaults to `FLY_TARGET`, then the backend's default target; `arch` and `chip` are
    other names of it. `backend` defaults to `FLY_BACKEND`, then the target's own. `opt` holds opt's
    arguments; None omits the stage. `opt_py`, `llc` and `link` set options of these stages as
    (name, value) pairs. The names are the fields of `fly_opt.pipeline.options.Options`,
    `fly_llc.codegen.options.Options` and `fly_link.options.Options`. `plugins` are activated after
    those of `FLY_PLUGINS`: ids, "-id", "module:NAME", records, or pairs of one and its options.
    """
    if plugins or requested():
        from fly.chains.plugins import with_plugins

        return with_plugins(
            plugins,
            lambda: make_chain(target, backend, opt, opt_py, llc, link, arch, chip),
        )
    return make_chain(target, backend, opt, opt_py, llc, link, arch, chip)


def make_chain(
    target: str | None,
    backend: str | None,
    opt: Sequence[str] | None,
    opt_py: Sequence[tuple[str, object]] = (),
    llc: Sequence[tuple[str, object]] = (),
    link: Sequence[tuple[str, object]] = (),
    arch: str | None = None,
    chip: str | None = None,
) -> Chain:
    """Returns what `chain` returns, with the plugins that are active now and no other."""
    from fly_backend.choice import aliased, choose

    from fly.chains import builtin as stages

    choice = choose(aliased(target, arch, chip), backend)
    of = (choice.target, choice.backend.name)
    made = [
        stages.opt_py(choice.target, dict(opt_py), choice.backend.name),
        *([] if opt is None else [Stage.command(["opt", *opt], suffix=".opt.ll")]),
        stages.llc(dict(llc), *of),
        stages.link(dict(link), *of),
    ]
    return Chain(choice.target, tuple(made), choice.backend.name)


def tuned_chain(target: str, backend: str, tuning: Tuning) -> Chain:
    """The chain of built-in stages with what `tuning` says of LLVM."""
    fields = tuning.opt_py_fields(), tuning.llc_fields()
    return make_chain(target, backend, tuning.opt_words(), *fields)


@functools.lru_cache(maxsize=64)
def kept_tuned_chain(target: str, backend: str, tuning: Tuning) -> Chain:
    """As `tuned_chain`, the same object for the same arguments."""
    return tuned_chain(target, backend, tuning)


def run(
    chain: Chain, data: bytes, store: Store | None = None, prefetch: Prefetch | None = None
) -> bytes:
    """Runs the chain on `data` and returns the last stage's result."""
    for _, made in results(chain, data, store, prefetch):
        data = made
    return data


def results(
    chain: Chain, data: bytes, store: Store | None = None, prefetch: Prefetch | None = None
) -> Iterator[tuple[Stage, bytes]]:
    """Runs the stages in order and yields each with its result. Results are looked up in `store`,
    which defaults to `default_store()`. `prefetch` is one that was already started for this
    chain."""
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
    """Starts the programs of later stages, and computes the slow parts of their fingerprints, once
    an earlier stage has to run: the later stages then most likely have to run too."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._programs = prefetch.Programs()
        self._started = False

    def __enter__(self) -> Prefetch:
        return self

    def __exit__(self, *_: object) -> None:
        self._programs.kill()

    def start(self, first: int = 0) -> None:
        """Starts the programs of the stages from `first` on. Later calls do nothing."""
        if self._started:
            return
        self._started = True
        self._programs.start(map(_command, self._chain.stages[first:]))


def _command(stage: Stage) -> prefetch.Command | None:
    """Returns the program that a stage will most likely run."""
    try:
        command = stage.ahead() if stage.ahead else None
    except FlyError:
        return None  # the stage itself reports what is missing
    if command is not None:
        identity.program_ahead()
    return command


def _result(
    stage: Stage, data: bytes, suffix: str, store: Store, working: Callable[[], None]
) -> bytes:
    """Returns the stage's result. Calls `working` before running the stage, but not on a hit."""
    identity = stage.identity()

    def make() -> bytes:
        working()
        return _work(stage, data, suffix)

    return store.obtain(
        key_of(identity, data),
        make,
        label=stage.name,
        suffix=stage.suffix,
        # The result is not stored if a program was replaced while it ran.
        valid=lambda: stage.identity() == identity,
        origin=(identity, data),
    )


def _work(stage: Stage, data: bytes, suffix: str) -> bytes:
    """Runs a stage. If it refuses its input, saves the input and adds the command to repeat it."""
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

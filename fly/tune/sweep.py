"""A sweep: all configurations are compiled side by side, and measured one after the other.

Each measurement is put into the content store when it is made, under the code and the case. So a
sweep that was interrupted or killed goes on where it was, code that did not change is not measured
again, and of several processes that tune the same function one measures, while the others wait.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from hashlib import sha256
from typing import Any

from fly_common import diagnostics
from fly_common.errors import FlyError, InputError, MissingError
from fly_common.quoting import quoted
from fly_common.record import field, record
from fly_store.store import default_store, key_of

from fly.call.compiled import Compiled
from fly.call.function import JitFunction
from fly.chains import messages
from fly.chains.chain import Chain, run
from fly.tune import builders, winners
from fly.tune.builders import Builders
from fly.tune.config import Setting
from fly.tune.key import Case
from fly.tune.measurement import Arguments, Measurement, from_bytes, measure, method_of
from fly.tune.progress import progress

# Measurements of this process, where nothing is stored.
_measured: dict[str, Measurement] = {}
MOST_MEASURED = 4096


@record
class Candidate:
    """A configuration of a call: the function with its options, the types that it is traced for,
    and the call's arguments."""

    setting: Setting
    function: JitFunction
    types: Any
    arguments: Arguments


@record(frozen=False, eq=False)
class Trial:
    """A candidate on its way: traced, compiled, measured, or an error on the way."""

    candidate: Candidate
    module: bytes = b""
    chain: Chain | None = None
    building: Future[None] | None = None
    error: FlyError | None = None
    measured: Measurement | None = None


@record
class Swept:
    """The result of a sweep: a measurement for each configuration, in their order. `errors` are
    those of the configurations that can't be used, as they were raised."""

    case: Case
    rows: tuple[tuple[Setting, Measurement], ...]
    errors: tuple[FlyError, ...] = field(default=())

    @property
    def best(self) -> tuple[Setting, Measurement] | None:
        """The configuration of the lowest cost, the first of equals; None if none can be used."""
        usable = [row for row in self.rows if row[1].cost is not None]
        return min(usable, key=lambda row: row[1].cost or 0.0) if usable else None

    def winner(self) -> winners.Winner:
        """The best configuration, for a file. InputError, with the reasons, if there is none."""
        best = self.best
        if best is None:
            raise self.failure()
        setting, measured = best
        assert measured.cost is not None
        of = (measured.cost, measured.unit, measured.method)
        return winners.Winner(self.case, setting.config.as_json, *of)

    def failure(self) -> FlyError:
        """The error of a sweep in which no configuration can be used. If all have the same one, as
        after a wrong argument, it is that."""
        if self.errors and len({str(error) for error in self.errors}) == 1:
            return self.errors[0]
        return none_usable([(row.config, measured.refused) for row, measured in self.rows])


def none_usable(reasons: Sequence[tuple[Any, str]]) -> InputError:
    """The error for configurations all of which are refused."""
    lines = [f"{config!r}: {quoted(why.splitlines()[0], 200)}" for config, why in reasons]
    return InputError("none of the configurations can be used", hint="\n  ".join(lines))


def sweep(title: str, case: Case, candidates: Sequence[Candidate]) -> Swept:
    """Compiles and measures the candidates. What a configuration can't do, such as fit into LDS, is
    its measurement; MissingError, and errors of a device that is lost, are raised."""
    trials = [Trial(candidate) for candidate in candidates]
    count = min(builders.available(), len(trials))
    done = 0
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(Builders(count)) if count > 1 else None
        step = stack.enter_context(progress(title, len(trials)))
        try:
            for trial in trials:
                _trace(trial, pool)
            for trial in trials:
                step(str(trial.candidate.setting.config))
                trial.measured = _measured_of(trial, case)
                done += 1
        except KeyboardInterrupt:
            diagnostics.warner("fly")(
                f"tuning {title} was interrupted; {done} of {len(trials)} measurements are kept"
            )
            raise
    rows = tuple((trial.candidate.setting, _known(trial)) for trial in trials)
    return Swept(case, rows, tuple(trial.error for trial in trials if trial.error is not None))


def _known(trial: Trial) -> Measurement:
    assert trial.measured is not None
    return trial.measured


@contextlib.contextmanager
def _refusals(trial: Trial) -> Iterator[None]:
    """Keeps an error that is the configuration's own. MissingError is the environment's."""
    try:
        with messages.collected():
            yield
    except MissingError:
        raise
    except FlyError as error:
        trial.error = error


def _trace(trial: Trial, pool: Builders | None) -> None:
    """Traces a candidate, and has it compiled if it is not in the store."""
    function = trial.candidate.function
    with _refusals(trial):
        trial.module, trial.chain = function.traced(trial.candidate.types)
        recipe = function.recipe()
        if pool and recipe is not None and not builders.stored(trial.chain, trial.module):
            trial.building = pool.start(recipe, trial.module)


def _measured_of(trial: Trial, case: Case) -> Measurement:
    """Compiles and measures a candidate, unless that is known."""
    method = method_of(case.device)
    if trial.building is not None:
        trial.building.result()
    measured = None
    if trial.error is None and trial.chain is not None:
        with _refusals(trial):
            data = run(trial.chain, trial.module)
            compiled = Compiled(data, module=trial.module, chain=trial.chain)
            candidate = trial.candidate
            function = candidate.function

            def work() -> Measurement:
                return measure(compiled, candidate.arguments, function.device, function.host)

            measured = _remembered(case, method, data, work)
    if measured is not None and not measured.refused:
        return measured
    if measured is not None:
        trial.error = InputError(measured.refused)
        return measured
    assert trial.error is not None
    return Measurement(None, "", method, refused=trial.error.message)


def _remembered(
    case: Case, method: str, image: bytes, work: Callable[[], Measurement]
) -> Measurement:
    """The measurement of an image for a case: from the store, or by `work`."""
    text = f"{case.text}\n{sha256(image).hexdigest()}"
    key = key_of(f"fly tune 1\n{method}", text.encode())
    if (known := _measured.get(key)) is not None:
        return known

    def make() -> bytes:
        if case.device == "emulator":
            return work().as_bytes
        # Two measurements at once on one device would disturb each other.
        with winners.locked(f"device {case.device}"):
            return work().as_bytes

    store = default_store()
    if store.folder is not None:
        return from_bytes(store.obtain(key, make, label="tune", suffix=".json"))
    if len(_measured) >= MOST_MEASURED:
        _measured.pop(next(iter(_measured)), None)
    measured = _measured[key] = from_bytes(make())
    return measured


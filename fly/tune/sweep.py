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
from fly_common.errors import Fault, FlyError, InputError, MissingError
from fly_common.quoting import shortened
from fly_common.record import field, record
from fly_store.store import default_store, key_of

from fly.call.compiled import Compiled
from fly.call.function import JitFunction
from fly.chains import messages
from fly.chains.chain import Chain, run
from fly.tune import builders, winners
from fly.tune.builders import Builders
from fly.tune.config import Config, Setting
from fly.tune.key import Case
from fly.tune.measurement import Arguments, Measurement, from_bytes, measure, method_of
from fly.tune.progress import progress

# Measurements of this process, where nothing is stored.
_measured: dict[str, Measurement] = {}
MOST_MEASURED = 4096


LOST = "the device can't be used any more: run the program again, and tuning goes on"


class Lost(Fault):
    """A fault after which the process can't use the device."""


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

    def winner(self) -> tuple[Setting, winners.Winner]:
        """The best configuration, and what a file has of it. An error with all reasons if there is
        none."""
        best = self.best
        if best is None:
            configs = [setting.config for setting, _ in self.rows]
            raise none_usable(list(zip(configs, self.errors, strict=True)))
        setting, measured = best
        assert measured.cost is not None
        of = (measured.cost, measured.unit, measured.method)
        return setting, winners.Winner(self.case, setting.config.as_json, *of)


def none_usable(refused: Sequence[tuple[Config, FlyError]]) -> FlyError:
    """The error for configurations all of which are refused. If all have the same error, as after a
    wrong argument, it is that."""
    first = refused[0][1]
    if len({str(error) for _, error in refused}) == 1:
        return first
    lines = [f"{config!r}: {shortened(error.message)}" for config, error in refused]
    text = "\n  ".join(line.replace("\n", " ") for line in lines)
    return InputError("none of the configurations can be used", hint=text)


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
    except (MissingError, Lost):
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

            measured, is_new = _remembered(case, method, data, work)
            if is_new and measured.is_fatal:
                raise Lost(measured.refused, hint=f"{LOST} after {candidate.setting.config!r}")
    if measured is not None and not measured.refused:
        return measured
    if measured is not None:
        trial.error = InputError(measured.refused)
        return measured
    assert trial.error is not None
    return Measurement(None, "", method, refused=trial.error.message)


def _remembered(
    case: Case, method: str, image: bytes, work: Callable[[], Measurement]
) -> tuple[Measurement, bool]:
    """The measurement of an image for a case, from the store or by `work`, and whether it was made
    now."""
    text = f"{case.text}\n{sha256(image).hexdigest()}"
    key = key_of(f"fly tune 1\n{method}", text.encode())
    is_new = False

    def make() -> bytes:
        nonlocal is_new
        is_new = True
        if case.device == "emulator":
            return work().as_bytes
        # Two measurements at once on one device would disturb each other.
        with winners.locked(f"device {case.device}"):
            return work().as_bytes

    store = default_store()
    if store.folder is not None:
        return from_bytes(store.obtain(key, make, label="tune", suffix=".json")), is_new
    if key not in _measured:
        if len(_measured) >= MOST_MEASURED:
            _measured.pop(next(iter(_measured)))
        _measured[key] = from_bytes(make())
    return _measured[key], is_new

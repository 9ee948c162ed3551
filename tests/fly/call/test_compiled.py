"""A compiled function: what it shows of itself, and what it was made from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fly_common.errors import Fault, InputError, Place, UsageError

from fly.call.compiled import Compiled
from fly.call.reports import fault_lines
from fly.chains.chain import Chain
from fly.chains.stage import Stage

ELF = b"\x7fELF\xff"
CHAIN = Chain(
    "gfx942",
    (
        Stage("first", lambda data: data + b" \xff", "1", ".txt"),
        Stage("second", lambda data: ELF, "1", ".o"),
    ),
)


def test_what_each_stage_made():
    made = Compiled(b"code", module=b"module", chain=CHAIN)
    for kind in ("mlir", ".mlir"):
        assert made.ir(kind) == "module"
    for kind in ("txt", ".txt"):
        assert made.ir(kind) == "module \N{REPLACEMENT CHARACTER}"
    assert made.ir("o") == ELF
    assert made.ir("hsaco") == made.ir(".hsaco") == b"code"
    with pytest.raises(UsageError) as refused:
        made.ir("ll")
    assert refused.value.message == "the chain does not produce 'll'"
    assert refused.value.hint == "it produces mlir, txt, o, asm"


@pytest.mark.parametrize(
    "parts", [{}, {"module": b"module"}, {"chain": CHAIN}], ids=["loaded", "no chain", "no module"]
)
@pytest.mark.parametrize("kind", ["mlir", "txt", "o"])
def test_what_was_loaded_shows_no_stages(parts: dict[str, Any], kind: str):
    made = Compiled(b"code", **parts)
    assert made.ir("hsaco") == b"code"
    with pytest.raises(UsageError) as refused:
        made.ir(kind)
    assert refused.value.message == f"a code object that was loaded has no {kind!r}"
    assert refused.value.hint == "it has 'asm' and 'hsaco'"


def with_image(**image: Any) -> Compiled:
    made = Compiled(b"code")
    made.__dict__["image"] = SimpleNamespace(target="gfx942", **image)
    return made


def test_its_name():
    planned = with_image(program=SimpleNamespace(entry="host"), kernels={"one": 1})
    assert repr(planned) == "<compiled host for gfx942, 4 bytes>"
    bare = with_image(program=None, kernels={"one": 1, "two": 2})
    assert repr(bare) == "<compiled one, two for gfx942, 4 bytes>"


def test_a_code_object_without_a_plan_is_launched_by_kernel():
    bare = with_image(program=None, kernels={})
    for call in (bare, lambda: bare.run({})):
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.message == "the code object has no host program"
        assert refused.value.hint == (
            "launch a kernel by its own arguments: .launch(kernel, grid, block, args)"
        )


def planned(*names: str) -> Compiled:
    parameters = [SimpleNamespace(name=name) for name in names]
    return with_image(program=SimpleNamespace(entry="host", parameters=parameters), kernels={})


def test_arguments_by_position_and_by_name(monkeypatch):
    found = []
    outcome = SimpleNamespace(results="results")
    monkeypatch.setattr(Compiled, "_run", lambda self, values, *_: found.append(values) or outcome)
    made = planned("A", "n")
    assert made(1, 2) == "results"
    made(1, n=2)
    made(n=2, A=1)
    assert found == [{"A": 1, "n": 2}] * 3
    made(1)
    made(1, other=2)
    assert found[3:] == [{"A": 1}, {"A": 1, "other": 2}], "what is missing is told later"


def test_arguments_that_are_too_many_or_given_twice():
    with pytest.raises(UsageError) as refused:
        planned("A", "n")(1, 2, 3)
    assert refused.value.message == "host takes 2 arguments, got 3"
    assert refused.value.hint == "parameters: A, n"
    with pytest.raises(UsageError, match="host got n twice, by position and by name"):
        planned("A", "n")(1, 2, n=3)


class Device:
    """A device that is opened and closed, and where a launch may go wrong."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.happened: list[Any] = []

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.happened.append("closed")

    def run(self, program: Any, image: Any, values: Any, viewed: Any, *_: Any) -> str:
        self.happened.append((program, image.target, values, viewed))
        if self.error:
            raise self.error
        return "outcome"


def on(device: Device) -> tuple[Compiled, list[Any]]:
    made, asked = with_image(program="program", kernels={}), []

    def opened(*given: Any) -> Device:
        asked.append(given)
        return device

    made.__dict__["_runtime"] = SimpleNamespace(device=opened)
    return made, asked


def test_a_program_runs_and_its_device_is_let_go():
    device = Device()
    made, asked = on(device)
    options: Any = object()
    given, viewed = {"n": np.int32(1)}, {"n": 1}
    assert made.run(given) == "outcome"  # type: ignore[comparison-overlap]
    made.run(given, device="emulator", options=options)
    assert asked == [("auto", "gfx942", None), ("emulator", "gfx942", options)]
    assert device.happened == [("program", "gfx942", given, viewed), "closed"] * 2


def test_a_fault_is_located_and_raised(monkeypatch):
    fault = Fault("wild", pc=4)
    device = Device(fault)
    made, _ = on(device)
    located = []
    monkeypatch.setattr(fault_lines, "locate", lambda *given: located.append(given))
    with pytest.raises(Fault) as raised:
        made.run({})
    assert raised.value is fault
    assert located == [(fault, made.image, None, None)]
    assert device.happened[-1] == "closed"
    device.error = InputError("no fault")
    with pytest.raises(InputError, match="no fault"):
        made.run({})
    assert len(located) == 1


# -- the line of a fault


@pytest.mark.parametrize("missing", ["", "pc", "module", "chain", "stages"])
def test_a_fault_has_a_line_where_its_code_can_be_made_again(missing: str, monkeypatch):
    line = Place("kernel.py", 7)
    monkeypatch.setattr(fault_lines, "_place", lambda *given: line)
    fault = Fault("wild", pc=None if missing == "pc" else 0)
    image: Any = object()
    module = None if missing == "module" else b""
    fault_lines.locate(fault, image, module, None if missing == "chain" else CHAIN)
    assert fault.place == (None if missing in ("pc", "module", "chain") else line)


def test_a_fault_that_has_its_line_keeps_it(monkeypatch):
    monkeypatch.setattr(fault_lines, "_place", lambda *given: pytest.fail("looked for"))
    line = Place("kernel.py", 7)
    fault = Fault("wild", pc=4, place=line)
    image: Any = object()
    fault_lines.locate(fault, image, b"module", CHAIN)
    assert fault.place == line


@pytest.mark.parametrize(("same", "found"), [(True, Place("kernel.py", 4)), (False, None)])
def test_the_line_is_that_of_the_same_code(same: bool, found: Place | None, monkeypatch):
    import fly_image

    again = SimpleNamespace(
        line=lambda pc: Place("kernel.py", pc), same_code=lambda image: same and image == "image"
    )
    monkeypatch.setattr(fly_image, "read", lambda data: again)
    fault, image = Fault("wild", pc=4), "image"
    fault_lines.locate(fault, image, b"module", CHAIN)  # type: ignore[arg-type]
    assert fault.place == found


def test_a_chain_that_fails_says_no_line():
    def refuse(data: bytes) -> bytes:
        raise InputError("no")

    fault = Fault("wild", pc=4)
    image: Any = object()
    fault_lines.locate(fault, image, b"", Chain("gfx942", (Stage("no", refuse, "1", ".o"),)))
    assert fault.place is None

"""The text form of a host program: canonical JSON (sorted keys, no white space), so that equal
programs are equal bytes. Version 2, the launch plan of earlier releases, is read too.

What `read` returns is sound: names, indices and scopes were checked (`fly_host.validation`), and
only the arguments of a call can still be wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_common.record import field_names, is_record

from fly_host import program as made
from fly_host.program import VERSION, Program
from fly_host.validation import validate

# Members of unions, by the name that the text has for them.
_CLASSES: dict[str, type] = {
    kind.__name__.lower(): kind
    for kind in (
        *(made.Tensor, made.Scalar, made.Stream, made.Buffer, made.Assigned),
        *(made.Check, made.Allocate, made.Free, made.Launch, made.Call, made.Loop, made.Branch),
    )
}
_NAMES = {kind: name for name, kind in _CLASSES.items()}


def write(program: Program) -> str:
    """The program's text."""
    return json.dumps(_data(program), sort_keys=True, separators=(",", ":"))


def read(text: str | bytes) -> Program:
    """Reads a program. InputError if the text is none, or one of another version."""
    try:
        data = json.loads(text)
        version = data["version"]
        if version == 2:
            data = _upgraded(data)
        elif version != VERSION:
            raise InputError(
                f"the host program has version {version}, but this tool reads versions 2 and"
                f" {VERSION}",
                hint="compile the kernel again with this version's fly-opt-py",
            )
        program = _program(data)
        validate(program)
        return program
    except KeyError as error:
        raise InputError(f"the host program is damaged: it has no field {error}") from None
    except RecursionError:
        raise InputError("the host program is damaged: it is nested too deeply") from None
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"the host program is damaged: {error}") from None


def _data(value: Any) -> Any:
    if is_record(value):
        data = {field: _data(getattr(value, field)) for field in field_names(value)}
        if data.get("alignment") == 0:
            del data["alignment"]  # as in texts from before there were any
        if data.get("rounded") is False:
            del data["rounded"]  # likewise
        if "descriptor" in data and data["descriptor"] is None:
            del data["descriptor"]
        name = _NAMES.get(type(value))
        # An operand has a field of this name, and is a member of no union of records.
        return data if name is None else {**data, "kind": name}
    if isinstance(value, tuple):
        return [_data(item) for item in value]
    return value


# -- reading: each function raises KeyError, TypeError or ValueError for what it can't read
def _upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """A launch plan as the program that it stands for: its launches are the steps."""
    launches = [
        {**launch, "kind": "launch", "shared": launch["lds"], "stream": None}
        for launch in data["launches"]
    ]
    return {
        **data,
        "steps": launches,
        "tensors": [],
        "results": None,
        "result_names": [],
    }


def _program(data: dict[str, Any]) -> Program:
    return Program(
        entry=_text(data["entry"]),
        target=_text(data["target"]),
        parameters=_each(_parameter, data["parameters"]),
        expressions=_each(tuple, data["expressions"]),
        steps=_each(_step, data["steps"]),
        tensors=_each(_tensor, data["tensors"]),
        results=_result(data["results"]),
        result_names=_each(_text, data["result_names"]),
    )


def _each(read_one: Callable[[Any], Any], items: Any) -> tuple[Any, ...]:
    if not isinstance(items, list):
        raise TypeError(f"a list is missing where there is {quoted(items, 40)}")
    return tuple(read_one(item) for item in items)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name is missing where there is {quoted(value, 40)}")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _parameter(data: dict[str, Any]) -> made.Parameter:
    kind, name = data["kind"], _text(data["name"])
    if kind == "stream":
        return made.Stream(name)
    dtype = _text(data["dtype"])
    if kind == "scalar":
        return made.Scalar(name, dtype, data.get("default"))
    if kind != "tensor":
        raise ValueError(f"parameter {name} is of no known kind")
    return made.Tensor(
        name,
        dtype,
        tuple(data["shape"]),
        tuple(data["strides"]),
        _text(data["access"]),
        bool(data["contiguous"]),
        tuple(data.get("multiples", ())),
        data.get("alignment", 0),
    )


def _tensor(data: dict[str, Any]) -> made.Buffer | made.Assigned:
    kind, name, dtype = data["kind"], _text(data["name"]), _text(data["dtype"])
    if kind == "assigned":
        return made.Assigned(name, dtype, data["rank"])
    if kind != "buffer":
        raise ValueError(f"tensor {name} is of no known kind")
    return made.Buffer(name, dtype, tuple(data["shape"]), tuple(data["strides"]), data["elements"])


def _step(data: dict[str, Any]) -> made.Step:
    readers: dict[str, Callable[[dict[str, Any]], made.Step]] = {
        "check": lambda d: made.Check(d["condition"], tuple(d["message"])),
        "allocate": lambda d: made.Allocate(_text(d["buffer"])),
        "free": lambda d: made.Free(_text(d["buffer"])),
        "launch": _launch,
        "call": _call,
        "loop": _loop,
        "branch": _branch,
    }
    reader = readers.get(data["kind"])
    if reader is None:
        raise ValueError(f"a step is of no known kind: {quoted(data['kind'], 40)}")
    return reader(data)


def _launch(data: dict[str, Any]) -> made.Launch:
    x, y, z = data["grid"]
    bx, by, bz = data["block"]
    words = tuple(tuple(map(_word, argument)) for argument in data["arguments"])
    stream = _optional_text(data["stream"])
    kernel = _text(data["kernel"])
    return made.Launch(kernel, (x, y, z), (bx, by, bz), data["shared"], words, stream)


def _word(data: dict[str, Any]) -> made.Word:
    found = data.get("descriptor")
    if found is None:
        return made.Word(**data)
    lists = {name: tuple(found[name]) for name in ("shape", "strides", "box")}
    descriptor = made.TileDescriptor(**{**found, **lists})
    return made.Word(**{**data, "descriptor": descriptor})


def _call(data: dict[str, Any]) -> made.Call:
    return made.Call(
        _text(data["function"]),
        _each(_operand, data["arguments"]),
        tuple((_text(name), _operand(operand)) for name, operand in data["keywords"]),
        _each(_text, data["results"]),
    )


def _loop(data: dict[str, Any]) -> made.Loop:
    return made.Loop(
        _each(lambda item: made.Carried(**item), data["carried"]),
        _each(lambda item: made.CarriedTensor(**item), data["tensors"]),
        data["condition"],
        _each(_step, data["body"]),
    )


def _branch(data: dict[str, Any]) -> made.Branch:
    return made.Branch(
        data["condition"],
        _each(_step, data["then"]),
        _each(_step, data["otherwise"]),
        _each(lambda item: made.Chosen(**item), data["integers"]),
        _each(lambda item: made.ChosenTensor(**item), data["tensors"]),
    )


def _operand(data: dict[str, Any]) -> made.Operand:
    kind, value = _text(data["kind"]), data["value"]
    if kind == "view":
        value = made.View(
            _text(value["tensor"]),
            tuple(value["shape"]),
            tuple(value["strides"]),
            value["offset"],
        )
    elif kind == "constant":
        value = _constant(value)
    return made.Operand(kind, value)


def _constant(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_constant, value))
    if not isinstance(value, None | bool | int | float | str):
        raise TypeError("a constant is neither a number, a string nor a list of them")
    return value


def _result(data: Any) -> made.Result:
    if isinstance(data, list):
        return tuple(map(_result, data))
    return None if data is None else _operand(data)

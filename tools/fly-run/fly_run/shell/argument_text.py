"""Parses NAME=VALUE on the command line, and makes the arrays that it describes.

    argument := [NAME "="] value
    value    := source [":" destination]
    source   := path | number | made | typed | "address:" (path | made)
    path     := text that ends in ".npy" or has a "/" in it
    number   := integer (3, -7, 0x10, 1_000) | real (2.5, 1e-5, inf, nan) | "true" | "false"
    made     := "zeros(" shape ["," dtype] ")"
              | "full(" shape "," dtype "," number ")"
              | "arange(" integer ["," dtype] ")"
              | "random(" shape ["," dtype] ["," "seed=" integer] ")"
    shape    := integer | "(" [integer {"," integer} [","]] ")"
    typed    := dtype ":" number | "bytes:" hex digits | "lds:" integer
    dtype    := "f16" | "bf16" | "f32" | "f64" | "i8" … "i64" | "u8" … "u64" | "bool"
              | "f8E4M3FN" | "f8E4M3FNUZ" | "f8E5M2" | "f8E5M2FNUZ" | "f8E8M0FNU"

`typed` is for kernels without a host program, where nothing else gives a number's size. random is
uniform, from a generator of its own: 0 ≤ x < 1 for floats, 0 to 99 for integers, true or false for
bool; the seed defaults to 0. `address:` is the address of an array, for a parameter that is a
number of 64 bits; generated ones need a type there. A destination is a path to which the array is
written after the run, as .npy. White space is allowed inside parentheses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_common.errors import UsageError
from fly_common.quoting import quoted, shortened

from fly_run.launch.arrays import dtypes

if TYPE_CHECKING:
    import numpy as np

Number = int | float | bool
MOST_DIGITS = 200  # of a number; 64 bits need 20, and Python refuses to parse 4,300
MOST_BYTES = 1 << 40  # a larger array is surely a typing error


@dataclass(frozen=True)
class Path:
    """A .npy file."""

    path: str


@dataclass(frozen=True)
class Made:
    """A generated array: `function` is zeros, full, arange or random. If `dtype` is None, it is the
    parameter's. `value` is the number of full, and the seed of random."""

    function: str
    shape: tuple[int, ...]
    dtype: str | None
    value: Number = 0


@dataclass(frozen=True)
class Typed:
    """A scalar of a given type (`dtype`), or raw bytes."""

    content: bytes
    dtype: str | None = None


@dataclass(frozen=True)
class LocalMemory:
    nbytes: int


@dataclass(frozen=True)
class Address:
    """The address of an array, for a parameter that is a number."""

    of: Path | Made


Source = Path | Made | Typed | LocalMemory | Address | Number


@dataclass(frozen=True)
class Argument:
    """An argument as written: `text` is all of it. `name` is None if there is none."""

    text: str
    name: str | None
    source: Source
    destination: str | None


FORMS = (
    "write x.npy, a number, zeros(shape,dtype), full(shape,dtype,value), arange(n,dtype) or"
    " random(shape,dtype,seed=0); :out.npy after it writes the result there"
)
_NAME = re.compile(r"([A-Za-z_]\w*)=")
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9](?:_?[0-9])*)")
_REAL = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)")
_CALL = re.compile(r"([a-z]+)\((.*)\)", re.DOTALL)
_WORDS = {"true": True, "false": False}


def is_argument(text: str) -> bool:
    """Whether a word of the command line is an argument, rather than the code object's file."""
    return bool(
        _NAME.match(text) or re.search(r"\.npy(:|$)|^[a-z]\w*[(:]", text) or _is_number(text)
    )


def parse(text: str) -> Argument:
    """Parses [NAME=]VALUE. UsageError names the word and lists what is allowed."""
    match = _NAME.match(text)
    name, value = (match[1], text[match.end() :]) if match else (None, text)
    source, destination = _split(value.strip())
    if destination == "":
        raise UsageError(f"{shortened(text)}: no path after the colon", hint=FORMS)
    return Argument(text, name, _source(text, source), destination)


def parse_all(texts: list[str]) -> list[Argument]:
    """Parses arguments. UsageError for a name or a destination that occurs twice."""
    import os

    made = [parse(text) for text in texts]
    for what, values in (
        ("argument", [a.name for a in made if a.name]),
        ("destination", [os.path.realpath(a.destination) for a in made if a.destination]),
    ):
        for value in values:
            if values.count(value) > 1:
                raise UsageError(f"{what} {value} is given twice")
    return made


def _split(value: str) -> tuple[str, str | None]:
    """Splits source and destination at the first colon outside parentheses that does not follow a
    type."""
    depth = 0
    for index, char in enumerate(value):
        depth += (char == "(") - (char == ")")
        if char == ":" and depth == 0 and value[:index] not in _TYPES:
            return value[:index].rstrip(), value[index + 1 :].strip()
    return value, None


_TYPES = frozenset((*dtypes.NUMPY, "bytes", "lds", "address"))


def _source(text: str, source: str) -> Source:
    kind, colon, rest = source.partition(":")
    if colon and kind == "address":
        of = _source(text, rest.strip())
        if not isinstance(of, Path | Made):
            raise UsageError(
                f"{shortened(text)}: only an array has an address", hint="write address:x.npy"
            )
        return Address(of)
    if source.endswith(".npy") or "/" in source:
        return Path(source)
    if (match := _CALL.fullmatch(source)) and source.count("(") == source.count(")"):
        return _made(text, match[1], [part.strip() for part in _commas(match[2])])
    if colon and kind in _TYPES:
        return _typed(text, kind, rest.strip())
    return _number(text, source)


def _is_number(text: str) -> bool:
    return text in _WORDS or bool(_INTEGER.fullmatch(text) or _REAL.fullmatch(text))


def _number(text: str, word: str) -> Number:
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word):
        # A leading zero does not mean octal here: 010 is ten.
        digits = word.replace("_", "")
        if len(digits) > MOST_DIGITS:
            raise UsageError(
                f"{text[:MOST_DIGITS]}…: a number of {len(digits)} digits is too large"
            )
        return int(digits, 0 if re.match(r"[+-]?0[xXbB]", digits) else 10)
    if _REAL.fullmatch(word):
        return float(word)
    raise UsageError(f"{shortened(text)}: can't parse {quoted(word)}", hint=FORMS)


def _integer(text: str, word: str, what: str) -> int:
    number = _number(text, word) if _INTEGER.fullmatch(word) else None
    if not isinstance(number, int) or number < 0:
        raise UsageError(f"{shortened(text)}: {what} must be an integer ≥ 0, not {quoted(word)}")
    return number


def _commas(inside: str) -> list[str]:
    """Splits at commas outside parentheses."""
    parts, depth = [""], 0
    for char in inside:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


_MADE = {
    "zeros": "zeros(shape,dtype)",
    "full": "full(shape,dtype,value)",
    "arange": "arange(n,dtype)",
    "random": "random(shape,dtype,seed=0)",
}


def _made(text: str, function: str, parts: list[str]) -> Made:
    if function not in _MADE:
        raise UsageError(f"{shortened(text)}: unknown function {function}()", hint=FORMS)
    usage = f"write {_MADE[function]}"
    seed: Number = 0
    if function == "random" and parts[-1].startswith("seed="):
        seed = _integer(text, parts.pop().removeprefix("seed="), "the seed")
    least, most = (3, 3) if function == "full" else (1, 2)
    if not least <= len(parts) <= most or not parts[0]:
        raise UsageError(f"{shortened(text)}: invalid arguments of {function}", hint=usage)
    shape = _shape(text, parts[0], usage)
    if function == "arange" and len(shape) != 1:
        raise UsageError(f"{shortened(text)}: arange makes one-dimensional arrays", hint=usage)
    dtype = parts[1] if len(parts) > 1 else None
    if dtype is not None and dtype not in dtypes.NUMPY:
        raise UsageError(
            f"{shortened(text)}: unknown type {quoted(dtype)}",
            hint=f"types: {', '.join(dtypes.NUMPY)}",
        )
    value = _number(text, parts[2]) if function == "full" else seed
    made = Made(function, shape, dtype, value)
    if _nbytes(made) > MOST_BYTES:
        raise UsageError(f"{shortened(text)}: an array of more than {MOST_BYTES >> 40} TiB")
    return made


def _nbytes(made: Made) -> int:
    import math

    return math.prod(made.shape) * dtypes.SIZES[made.dtype or "f64"]


def _shape(text: str, word: str, usage: str) -> tuple[int, ...]:
    if not (word.startswith("(") and word.endswith(")")):
        return (_integer(text, word, "an extent"),)
    if not word[1:-1].strip():
        return ()
    parts = [part.strip() for part in word[1:-1].split(",")]
    if parts[-1] == "":
        parts.pop()  # (3,) is a shape of one dimension
    if "" in parts or not 0 < len(parts) <= 32:
        raise UsageError(f"{shortened(text)}: {shortened(word)} is not a shape", hint=usage)
    return tuple(_integer(text, part, "an extent") for part in parts)


def _typed(text: str, kind: str, word: str) -> Typed | LocalMemory:
    if kind == "lds":
        return LocalMemory(_integer(text, word, "the amount of LDS"))
    if kind == "bytes":
        try:
            return Typed(bytes.fromhex(word))
        except ValueError:
            raise UsageError(
                f"{shortened(text)}: {quoted(word)} is not a string of hex digits, two per byte"
            ) from None
    number = _number(text, word)
    if isinstance(number, float) and kind not in dtypes.FLOATS:
        raise UsageError(f"{shortened(text)}: {shortened(word)} is not a valid {kind}")
    try:
        return Typed(dtypes.pack_scalar(number, kind), kind)
    except OverflowError:
        raise UsageError(f"{shortened(text)}: {shortened(word)} does not fit in {kind}") from None


def make(made: Made, dtype: str | None) -> np.ndarray:
    """Makes the array; `dtype` is the parameter's, for a source without a type. OverflowError for a
    number that the type can't hold."""
    import numpy as np

    wanted = made.dtype or dtype
    if wanted is None:
        raise UsageError(
            f"{made.function} needs a type here", hint=f"write {_MADE[made.function]}, like f32"
        )
    kind = dtypes.numpy_dtype(wanted)
    if made.function == "zeros":
        return np.zeros(made.shape, kind)
    if made.function == "full":
        content = np.frombuffer(dtypes.pack_scalar(made.value, wanted), kind)
        return np.broadcast_to(content[0], made.shape).copy()
    if made.function == "arange":
        values = np.arange(made.shape[0], dtype=np.float64 if wanted in dtypes.FLOATS else np.int64)
    else:
        generator = np.random.default_rng(int(made.value))
        if wanted in dtypes.FLOATS:
            values = generator.random(made.shape, dtype=np.float32)
        else:
            values = generator.integers(0, 2 if wanted == "bool" else 100, made.shape)
    return dtypes.convert(values, wanted)

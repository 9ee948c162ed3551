"""Mutates a file's bytes or a text, with a random generator.

    damaged(generator, data, others, text=True)

`others` are further valid inputs of the same kind, from which pieces are inserted. A case has one
to three mutations, seldom more: a text with many is rejected at its first line.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fly_image.elf import Elf

Damage = Callable[[random.Random, bytes, Sequence[bytes]], bytes]

EXTREMES = (
    b"0", b"-1", b"1", b"2147483647", b"2147483648", b"4294967295", b"4294967296", b"65536",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616",
    b"-9223372036854775808", b"1" + b"0" * 40, b"9" * 5000, b"0x" + b"f" * 40, b"1e400", b"-0.0",
    b"nan", b"inf", b"1.5", b"true", b"null", b'""', b"?", b"255", b"256", b"-255",
)  # fmt: skip
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[\w.$@%#!-]+|->|[^\s\w]')
_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_PAIRS = (b"()", b"[]", b"{}", b"<>")
_DEPTHS = (3, 40, 300, 3000, 50_000)


def damaged(
    generator: random.Random,
    data: bytes,
    others: Sequence[bytes],
    *,
    text: bool,
    special: Damage | None = None,
) -> bytes:
    """Returns a mutation of `data`, never `data` itself. `special` is a mutation specific to this
    kind of input: half of the cases have only that."""
    kinds = TEXTUAL if text else BINARY
    if special and generator.random() < 0.5:
        kinds = (special,)
    for _ in range(20):
        made = data
        for _ in range(generator.choice((1, 1, 1, 1, 2, 2, 3, 8))):
            made = generator.choice(kinds)(generator, made, others)
        if made != data:
            return made
    return data + b"\n\0"


# -- bytes ----------------------------------------------------------------------------------------
def _flip(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    made = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 8, 64)) if data else 0):
        made[generator.randrange(len(made))] ^= 1 << generator.randrange(8)
    return bytes(made)


def _set(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    made = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 8)) if data else 0):
        made[generator.randrange(len(made))] = generator.choice(
            (0, 0xFF, 0x7F, 0x80, 0x22, 0x5C, 0x0A, generator.randrange(256))
        )
    return bytes(made)


def _truncate(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: generator.randrange(len(data))] if data else data


def _range(generator: random.Random, data: bytes) -> tuple[int, int]:
    start = generator.randrange(len(data) + 1)
    most = generator.choice((4, 64, len(data) - start))
    return start, min(len(data), start + generator.randrange(max(1, most) + 1))


def _remove(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _range(generator, data)
    return data[:start] + data[end:]


def _repeat(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _range(generator, data)
    times = generator.choice((1, 1, 1, 2, 100)) if end - start < 10_000 else 1
    return data[:end] + data[start:end] * times + data[end:]


def _zero(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _range(generator, data)
    return data[:start] + bytes([generator.choice((0, 0xFF))]) * (end - start) + data[end:]


def _splice(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = generator.choice(others) if others else data
    start, end = _range(generator, other)
    at, past = _range(generator, data)
    return data[:at] + other[start:end] + data[generator.choice((at, past)) :]


def _word(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Replaces an aligned integer by an extreme value, or changes it slightly."""
    size = generator.choice((2, 4, 8))
    if len(data) < size:
        return data
    at = generator.randrange(len(data) // size) * size
    old = int.from_bytes(data[at : at + size], "little")
    top = 1 << 8 * size
    new = generator.choice((0, 1, top - 1, top >> 1, (top >> 1) - 1, old + 1, old - 1, old * 2))
    return data[:at] + (new % top).to_bytes(size, "little") + data[at + size :]


# -- texts ----------------------------------------------------------------------------------------
def _line(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    first, second = generator.randrange(len(lines)), generator.randrange(len(lines))
    what = generator.randrange(4)
    if what == 0:
        del lines[first]
    elif what == 1:
        lines.insert(second, lines[first])
    elif what == 2:
        lines[first], lines[second] = lines[second], lines[first]
    else:
        other = (generator.choice(others) if others else data).split(b"\n")
        lines.insert(first, generator.choice(other))
    return b"\n".join(lines)


def _token(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    tokens = [match.span() for match in _TOKEN.finditer(data)]
    if len(tokens) < 2:
        return data
    (start, end), (left, right) = sorted(generator.sample(tokens, 2))
    what = generator.randrange(5)
    if what == 0:
        return data[:start] + data[end:]
    if what == 1:
        return data[:end] + b" " + data[start:end] + data[end:]
    if what == 2:
        return data[:start] + data[left:right] + data[end:left] + data[start:end] + data[right:]
    if what == 3:
        return data[:start] + data[left:right] + data[end:]
    other = generator.choice(others) if others else data
    found = _TOKEN.search(other, generator.randrange(len(other) + 1))
    return data[:start] + (found[0] if found else b"") + data[end:]


def _number(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    found = [match.span() for match in _NUMBER.finditer(data)]
    if not found:
        return data
    start, end = generator.choice(found)
    return data[:start] + generator.choice(EXTREMES) + data[end:]


def _nest(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Wraps a token in brackets, few or very many."""
    tokens = [match.span() for match in _TOKEN.finditer(data)]
    if not tokens:
        return data
    start, end = generator.choice(tokens)
    opening, closing = generator.choice(_PAIRS).decode()
    word = generator.choice((b"", b"", b"tuple", b"-", b"!fly.ptr", b"a = "))
    depth = generator.choice(_DEPTHS[: generator.choice((2, 3, 5))])
    inside = (word + opening.encode()) * depth + data[start:end]
    return data[:start] + inside + closing.encode() * depth + data[end:]


def _string(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Inserts invalid UTF-8 or escapes, in a string or anywhere."""
    quotes = [match.end() for match in re.finditer(rb'"', data)]
    at = generator.choice(quotes) if quotes else generator.randrange(len(data) + 1)
    what = (
        b"\\ff",
        b"\\00",
        b"\xff",
        b"\xc3",
        b"\0",
        b"\\",
        b"\xed\xa0\x80",
        b"\xe2\x80\xae",
        b"%s",
    )
    return data[:at] + generator.choice(what) + data[at:]


# -- one kind of input ----------------------------------------------------------------------------
_VALUES = (
    *(0, 1, -1, 2, 3, 64, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), 10**40, 1.5, 1e400),
    *(float("nan"), True, False, None, "", "A", "const", "pointer", "i64", "\ud800", [], {}, [[]]),
)


def json_value(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Mutates JSON that stays well formed: exchanges, removes or repeats a few values."""
    made = json.loads(data)
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        spots = list(_spots(made))
        if not spots:
            break
        holder, key = generator.choice(spots)
        what = generator.randrange(6)
        if what == 0 and isinstance(holder, list):
            holder.insert(generator.randrange(len(holder) + 1), holder[key])
        elif what == 1:
            del holder[key]
        elif what == 2:
            other, place = generator.choice(spots)
            holder[key] = copy.deepcopy(other[place])
        elif what == 3 and type(holder[key]) is int:
            holder[key] += generator.choice((-1, 1, 2**32))
        else:
            holder[key] = copy.deepcopy(generator.choice(_VALUES))
    return json.dumps(made).encode()


def _spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every value's location: its container, and the index or key."""
    if isinstance(value, (list, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            yield value, key
            yield from _spots(inner)


# Tokens that can replace each other in a compiler's text, by class. Lengths are bounded, because a
# text of 50,000 brackets would take minutes.
_CLASSES = tuple(
    re.compile(pattern)
    for pattern in (
        rb"(?<![\w.])(?:[fi]\d{1,9}|bf16|index|half|float|double|bfloat|ptr)(?![\w.])",
        rb"(?<=[<\s(,])(?:vector|memref|tuple)?<[^<>\n\"]{1,40}>",
        rb"![a-z_]{1,20}\.[\w.]{1,40}(?:<[^<>]{0,60}+(?:<[^<>]{0,60}+>[^<>]{0,60}+){0,4}+>)?",
        rb"(?<![\w.%@#])-?\d{1,30}(?![\w.])",
        rb"%[\w.$]{1,30}",
        rb"[@$][\w.$]{1,30}",
        rb"(?<![\w.%@$#!])[a-z_]{1,20}\.[a-z_.]{1,40}(?=[\s(<{])",
        rb"(?<![\w.%@$#!])[A-Za-z_]{3,30}(?![\w.])",
        rb"\"[^\"\n]{0,60}\"",
        rb"(?<![\w.])[\w.]{1,30} = [^,={}\[\]<>\n]{1,60}(?=[,}])",
        rb"\{[^{}\n]{1,80}\}",
        rb"(?<=\()[^()\n]{1,80}(?=\))",
    )
)
_ODD_TYPES = (b"i0", b"i1", b"i4", b"i65", b"i128", b"f16", b"bf16", b"f64", b"f8E4M3FN", b"index",
              b"vector<4xf32>", b"vector<0xf32>", b"tuple<>", b"none", b"!llvm.ptr",
              b"memref<?xi8>",
              b"!fly.layout<(4,?):(1,?)>", b"!fly.int_tuple<?>", b"complex<f32>")  # fmt: skip


def exchange(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Replaces one token by another of its class, everywhere or at one place; most results still
    parse."""
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        number = generator.randrange(len(_CLASSES))
        spots = list(_CLASSES[number].finditer(data))
        if not spots:
            continue
        spot = generator.choice(spots)
        source = data if generator.random() < 0.6 or not others else generator.choice(others)
        found = [match[0] for match in _CLASSES[number].finditer(source)] or [b""]
        if number in (0, 2) and generator.random() < 0.4:
            found = list(_ODD_TYPES)
        elif number == 3 and generator.random() < 0.5:
            found = list(EXTREMES[:15])
        new = generator.choice((generator.choice(found),) * 6 + (b"",))
        if generator.random() < 0.5:
            data = data[: spot.start()] + new + data[spot.end() :]
        else:
            old = re.escape(spot[0])
            data = re.sub(rb"(?<![\w.])" + old + rb"(?![\w])", lambda _, new=new: new, data)
    return data


def elf_code(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Mutates the instructions of a code object, and nothing else."""
    made = bytearray(data)
    (segment,) = [one for one in Elf.parse(data).segments if one.executable][:1]
    start = data.find(segment.data)
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        at = start + generator.randrange(len(segment.data) // 4) * 4
        word = int.from_bytes(made[at : at + 4], "little")
        word ^= generator.choice((1 << generator.randrange(32), generator.getrandbits(32), 0xFF))
        made[at : at + 4] = word.to_bytes(4, "little")
    return bytes(made)


def npy_header(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Writes a header that is valid Python with unusual content."""
    shapes = (
        *(
            "()",
            "(1,)",
            "(0,)",
            "(-1,)",
            "(True,)",
            "(1.5,)",
            "(None,)",
            "3",
            "[3]",
            "'3'",
            "(3, )",
        ),
        *("(0, 2**63-1)", "(0, 9223372036854775807)", "(9223372036854775807, 2)", "(1,)*65"),
        *(f"({'1,' * 65})", f"({'0,' * 64})", f"({10**30},)", "((3,),)", "{3}", "...", "(3, 4"),
    )
    types = (
        *("<f4", ">f4", "|b1", "<f2", "<i8", "|O", "|V3", "<U4", "|S0", "<M8[s]", "<c16", "f", ""),
        *("<f3", "<f99999999999", "(2,)<f4", "<f4,<i4", "\x00", "|V0", "<V9223372036854775807"),
    )
    quoted = repr(generator.choice(types))
    descr = generator.choice((quoted, quoted, "[('a', '<f4')]", "None", "7", "('<f4', (2,))", "{}"))
    parts = [
        f"'descr': {descr}",
        f"'fortran_order': {generator.choice(('False', 'False', 'True', '0', 'None', '[]'))}",
        f"'shape': {generator.choice(shapes)}",
    ]
    if generator.random() < 0.2:
        parts.pop(generator.randrange(3))
    text = (
        "{" + ", ".join(parts) + generator.choice(("}", "}", "}", "", ", }", "}}", "} + {}", "\n"))
    )
    header = text.encode("latin1") + b"\n"
    length = generator.choice((len(header), len(header), len(header), 0, 65535))
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + header + data[-64:]


BINARY: tuple[Damage, ...] = (
    *(_flip, _flip, _set, _truncate, _remove, _repeat, _zero, _splice, _word, _word),
)
TEXTUAL: tuple[Damage, ...] = (
    *(_flip, _set, _truncate, _remove, _repeat, _splice, _line, _line, _token, _token, _token),
    *(_number, _number, _nest, _string),
)

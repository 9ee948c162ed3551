"""Reports of kernels: records that a kernel writes to a variable of its module while it runs.

A module whose kernels report has these variables. The layout is fixed, so that any launcher reads
it:

    fly_reports        the buffer: HEADER (the number of reports, 0), then CAPACITY records. A
                       record is RECORD: the site, block x y z, thread x y z, a word of padding,
                       and VALUES integers of 64 bits. Reports beyond the capacity are only counted.
    fly_prints         the same for lines that are printed: see PRINTS
    fly_report_sites   JSON: what each site says, and the variables that are cleared before a launch

A site's text has `{n}` for the n-th value, `{n:thread}` for a thread's number in its block as x, y,
z, `{n:site}` for another site's file and line, and `{n:what}` for what that site calls itself.
`{n:i32:FORMAT}` is the value as a number of a type (see `TYPES`) in one of Python's formats; `{{}`
is an opening brace.
"""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError, Place
from fly_common.record import as_dict, record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUFFER, SITES = "fly_reports", "fly_report_sites"
VERSION = 1
CAPACITY, VALUES = 256, 4
HEADER = struct.Struct("<IIII")
# How the 64 bits of a value are read: f32 has its own 32 bits.
TYPES = ("bool", "i64", "u64", "f32", "f64")


@record
class Channel:
    """A buffer of reports: its variable, how many it keeps, and how many values each has."""

    buffer: str
    capacity: int
    values: int

    @property
    def record(self) -> struct.Struct:
        return struct.Struct(f"<8I{self.values}q")

    @property
    def nbytes(self) -> int:
        return HEADER.size + self.capacity * self.record.size


FAULTS = Channel(BUFFER, CAPACITY, VALUES)
PRINTS = Channel("fly_prints", 4096, 8)
RECORD, NBYTES = FAULTS.record, FAULTS.nbytes

_FIELD = re.compile(
    r"\{\{\}|\{(\d+)(?::(?:(thread|site|what)|(bool|[iu]64|f32|f64)(?::([^{}]*))?))?\}"
)


@record
class Site:
    """A place in a kernel that may report. `file` is "" where the source is not known."""

    kernel: str
    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    what: str = ""

    @property
    def place(self) -> Place | None:
        """The place with its source line, if the file can be read."""
        if not self.file:
            return None
        import linecache

        linecache.checkcache(self.file)
        text = linecache.getline(self.file, self.line).rstrip("\n")
        return Place(self.file, self.line, self.column or None, text or None)

    @property
    def at(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "an unknown line"


@record
class Sites:
    """The sites of a module, in the order of their numbers. `clear` are the variables that have to
    be zero when a launch begins, besides the buffer's header."""

    sites: tuple[Site, ...] = ()
    clear: tuple[str, ...] = ()

    @staticmethod
    def parse(text: bytes) -> Sites:
        """Reads the content of `fly_report_sites`. InputError if it is not well formed."""
        try:
            found: dict[str, Any] = json.loads(text.rstrip(b"\0"))
            version = found["version"]
            sites = tuple(Site(**one) for one in found["sites"])
            clear = tuple(map(str, found["clear"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"the table of reports is damaged: {error}") from None
        if version != VERSION:
            raise InputError(f"the reports have version {version}; this is version {VERSION}")
        return Sites(sites, clear)

    def text(self) -> str:
        sites = [as_dict(one) for one in self.sites]
        made = {"version": VERSION, "sites": sites, "clear": list(self.clear)}
        return json.dumps(made, separators=(",", ":"))


@record
class Report:
    """A record that a kernel wrote."""

    site: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    values: tuple[int, ...]

    def message(self, sites: Sequence[Site], block: tuple[int, int, int]) -> str:
        """The site's text with the values, for a launch with blocks of this size."""

        def filled(match: re.Match[str]) -> str:
            if match[1] is None:
                return "{"
            value = self.values[int(match[1])]
            if match[3] is not None:
                return shown(value, match[3], match[4] or "")
            if match[2] == "thread":
                return str(thread_of(value, block))
            if match[2] is not None:
                other = sites[value] if 0 <= value < len(sites) else Site("", "")
                return other.at if match[2] == "site" else other.what
            return str(value)

        return _FIELD.sub(filled, sites[self.site].text)


def shown(value: int, kind: str, form: str) -> str:
    """A number of one of TYPES, in one of Python's formats. A float without a format has as many
    digits as tell it from other numbers of its type."""
    bits = struct.pack("<q", value)
    if kind == "bool":
        return format(bool(value), form)
    if kind == "u64":
        return format(int.from_bytes(bits, "little"), form)
    if kind == "i64":
        return format(value, form)
    (number,) = struct.unpack("<f" if kind == "f32" else "<d", bits[: 4 if kind == "f32" else 8])
    if form or kind == "f64":
        return format(number, form)
    return next((text for text in _digits(number) if _is_same(text, number)), repr(number))


def _digits(number: float) -> Iterator[str]:
    """A number with more and more digits, as Python shows it."""
    return (repr(float(f"{number:.{digits}g}")) for digits in range(1, 10))


def _is_same(text: str, number: float) -> bool:
    return struct.pack("<f", float(text)) == struct.pack("<f", number)


def thread_of(number: int, block: tuple[int, int, int]) -> tuple[int, int, int]:
    """The position of the thread with this number in a block of this size."""
    x, y = block[0], block[1]
    return number % x, number // x % y, number // (x * y)


def read(data: bytes, sites: Sequence[Site], channel: Channel = FAULTS) -> tuple[int, list[Report]]:
    """The number of reports, and those that the buffer holds. InputError for a site that is not."""
    count = HEADER.unpack_from(data)[0]
    found = []
    layout = channel.record
    for number in range(min(count, channel.capacity)):
        site, *rest = layout.unpack_from(data, HEADER.size + number * layout.size)
        if site >= len(sites):
            raise InputError(f"a kernel reports from site {site} of {len(sites)}")
        x, y, z, i, j, k, _, *values = rest
        found.append(Report(site, (x, y, z), (i, j, k), tuple(values)))
    return count, found

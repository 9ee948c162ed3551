"""Reports of kernels: records that a kernel writes to a variable of its module while it runs.

A module whose kernels report has two variables. The layout is fixed, so that any launcher reads it:

    fly_reports        the buffer: HEADER (the number of reports, 0), then CAPACITY records. A
                       record is RECORD: the site, block x y z, thread x y z, a word of padding,
                       and VALUES integers of 64 bits. Reports beyond the capacity are only counted.
    fly_report_sites   JSON: what each site says, and the variables that are cleared before a launch

A site's text has `{n}` for the n-th value, `{n:thread}` for a thread's number in its block as x, y,
z, `{n:site}` for another site's file and line, and `{n:what}` for what that site calls itself.
"""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError, Place
from fly_common.record import as_dict, record

if TYPE_CHECKING:
    from collections.abc import Sequence

BUFFER, SITES = "fly_reports", "fly_report_sites"
VERSION = 1
CAPACITY, VALUES = 256, 4
HEADER = struct.Struct("<IIII")
RECORD = struct.Struct(f"<8I{VALUES}q")
NBYTES = HEADER.size + CAPACITY * RECORD.size

_FIELD = re.compile(r"\{(\d+)(?::(thread|site|what))?\}")


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
            value = self.values[int(match[1])]
            if match[2] == "thread":
                return str(thread_of(value, block))
            if match[2] is not None:
                other = sites[value] if 0 <= value < len(sites) else Site("", "")
                return other.at if match[2] == "site" else other.what
            return str(value)

        return _FIELD.sub(filled, sites[self.site].text)


def thread_of(number: int, block: tuple[int, int, int]) -> tuple[int, int, int]:
    """The position of the thread with this number in a block of this size."""
    x, y = block[0], block[1]
    return number % x, number // x % y, number // (x * y)


def read(data: bytes, sites: Sequence[Site]) -> tuple[int, list[Report]]:
    """The number of reports, and those that the buffer holds. InputError for a site that is not."""
    count = HEADER.unpack_from(data)[0]
    found = []
    for number in range(min(count, CAPACITY)):
        site, *rest = RECORD.unpack_from(data, HEADER.size + number * RECORD.size)
        if site >= len(sites):
            raise InputError(f"a kernel reports from site {site} of {len(sites)}")
        x, y, z, i, j, k, _, *values = rest
        found.append(Report(site, (x, y, z), (i, j, k), tuple(values)))
    return count, found

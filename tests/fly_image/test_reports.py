"""Reports of kernels: the buffer, the table of sites, messages."""

from __future__ import annotations

import json

import pytest
from fly_common.errors import InputError
from fly_image import reports
from fly_image.reports import Report, Site, Sites, read

SITES = (
    Site("k", "{0} at {1:site}, a {1:what}, by {2:thread} and {9}", "k.py", 3, 5, "store"),
    Site("k", "nothing to fill in", what="load"),
)


def packed(*records, count=None) -> bytes:
    head = reports.HEADER.pack(len(records) if count is None else count, 0, 0, 0)
    return (head + b"".join(reports.RECORD.pack(*one) for one in records)).ljust(reports.NBYTES)


def test_records_are_read():
    data = packed((1, 1, 2, 3, 4, 5, 6, 0, -7, 8, 9, 1 << 40))
    count, (one,) = read(data, SITES)
    assert count == 1
    assert one == Report(1, (1, 2, 3), (4, 5, 6), (-7, 8, 9, 1 << 40))


def test_more_reports_than_the_buffer_holds():
    record = (0,) * 12
    data = packed(*[record] * reports.CAPACITY, count=5000)
    count, found = read(data, SITES)
    assert (count, len(found)) == (5000, reports.CAPACITY)


def test_a_site_that_is_not():
    with pytest.raises(InputError, match="a kernel reports from site 2 of 2"):
        read(packed((2, *[0] * 11)), SITES)


def test_a_message_has_values_threads_and_other_sites():
    sites = (Site("k", "{0} at {1:site}, a {1:what}, by {2:thread}"), SITES[0], SITES[1])
    made = Report(0, (0, 0, 0), (0, 0, 0), (-3, 1, 77, 0))
    assert made.message(sites, (8, 4, 4)) == "-3 at k.py:3, a store, by (5, 1, 2)"
    made = Report(0, (0, 0, 0), (0, 0, 0), (5, 2, 0, 0))
    assert made.message(sites, (8, 1, 1)) == "5 at an unknown line, a load, by (0, 0, 0)"
    made = Report(0, (0, 0, 0), (0, 0, 0), (5, 99, 0, 0))
    assert made.message(sites, (8, 1, 1)) == "5 at an unknown line, a , by (0, 0, 0)"


def test_the_table_is_what_it_was():
    made = Sites(SITES, ("shadow",))
    assert Sites.parse(made.text().encode() + b"\0") == made


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.pop("sites"),
        lambda table: table.update(version=2),
        lambda table: table["sites"][0].update(colour="red"),
        lambda table: table["sites"].append(7),
        lambda table: table.update(clear=None),
    ],
)
def test_a_damaged_table(change):
    table = json.loads(Sites(SITES).text())
    change(table)
    with pytest.raises(InputError, match="reports"):
        Sites.parse(json.dumps(table).encode())


def test_no_table():
    with pytest.raises(InputError, match="the table of reports is damaged"):
        Sites.parse(b"{")


def test_the_place_of_a_site_has_its_line(tmp_path):
    file = tmp_path / "k.py"
    file.write_text("one\ntwo\n")
    place = Site("k", "", str(file), 2, 3).place
    assert (place.line, place.column, place.text) == (2, 3, "two")
    assert Site("k", "", str(tmp_path / "none.py"), 2).place.text is None
    assert Site("k", "", str(file), 9).place.text is None
    assert Site("k", "").place is None

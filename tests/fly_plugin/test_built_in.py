"""What is built in, as records of plugins; and each kind of it from outside."""

from __future__ import annotations

import json
import shutil

import fly_draw
import pytest
from fly_common.errors import UsageError
from fly_common.resolve import resolve
from fly_plugin import activation, built_in, discovery, manifest
from fly_plugin.manifest import Plugin
from plugins import EXAMPLES

KINDS = ("backends", "targets", "devices", "filters", "pictures")


def test_the_ids_are_reserved():
    assert tuple(one.id for one in built_in.plugins()) == manifest.BUILT_IN
    for name in manifest.BUILT_IN:
        with pytest.raises(UsageError, match=f"'{name}' can't be the id of a plugin"):
            discovery.of_object(Plugin(id=name))
        for word in (name, f"-{name}"):
            with pytest.raises(UsageError, match=f"the plugin '-?{name}' is built in"):
                activation.activate([activation.Request(word, "--plugin")])


def test_the_records_name_everything_that_is_built_in():
    """Each reference can be imported, and each name is that of a registry."""
    from fly_backend import registry as backends
    from fly_draw import pictures
    from fly_llc.insertion import filters
    from fly_run.devices import registry as devices
    from fly_target import registry as targets

    tables = {
        "backends": backends.BUILT_IN,
        "targets": targets.BUILT_IN,
        "devices": devices.DEVICES,
        "filters": filters.SHIPPED,
        "pictures": pictures.BUILT_IN,
    }
    assert tuple(tables) == KINDS
    for kind, table in tables.items():
        found = [name for one in built_in.plugins() for name in getattr(one, kind)]
        assert sorted(found) == sorted(table)
    for one in built_in.plugins():
        assert one.references
        for reference in one.references:
            assert resolve(reference) is not None


def test_what_is_built_in_is_listed(site):
    rows = json.loads(site.ok("fly-llc", "--list-plugins", "--json"))
    assert [(row["id"], row["state"]) for row in rows] == [
        (name, "built in") for name in manifest.BUILT_IN
    ]
    assert {row["distribution"] for row in rows} == {"fly-filters"}
    assert rows[0]["backends"] == ["rocm"]
    assert "gfx942" in rows[0]["targets"]
    text = site.ok("fly-run", "--list-plugins").decode()
    assert "machine-passes (fly-filters " in text
    assert "  filters    nop-sled, schedule, peephole, tighten-waits, pressure\n" in text


@pytest.mark.parametrize(
    ("kind", "name", "who"),
    [
        ("devices", "emulator", "fly-run"),
        ("devices", "auto", "fly-run"),
        ("pictures", "layout", "fly-filters"),
        ("filters", "peephole", "fly-llc"),
    ],
)
def test_names_of_built_in_parts_are_taken(kind, name, who):
    with pytest.raises(UsageError, match=f"'{name}', which {who} defines too"):
        activation.activate([activation.Request(Plugin(id="a", **{kind: {name: "m:X"}}), "test")])


OUTSIDE = """
from fly_plugin.manifest import Plugin
PLUGIN = Plugin(
    id="outside",
    version="1",
    backends={"template": "fly_backend_template.backend:BACKEND"},
    targets={"mine": "pkg_outside.chip:MINE"},
    devices={"loud": "pkg_outside.device:open_loud"},
    filters={"count": "pkg_outside.machine:main"},
    pictures={"size": "pkg_outside.picture:draw"},
)
"""
FILES = {
    "chip": """
from fly_common.record import replace
from fly_target.amd.chips import CHIPS
MINE = replace(next(one for one in CHIPS if one.name == "gfx942"), name="mine")
""",
    "device": """
from fly_run.emulator.machine import Emulator

def open_loud(target, options):
    print("loud: opened")
    return Emulator(target, options)
""",
    "machine": """
import sys
from fly_llc import mir

def main(text, words):
    blocks = sum(len(one.blocks) for one in mir.parse(text).functions)
    print(f"count: {blocks > 0}", file=sys.stderr)
    return text
""",
    "picture": """
from fly_draw.svg import Picture

def draw(found, options):
    return Picture(f"<svg>{found} {options.vector}</svg>")
""",
}


def test_each_kind_of_built_in_part_may_come_from_outside(site):
    """One record with a backend, a target, a device, a machine pass and a picture."""
    site.install("outside", source=OUTSIDE, **FILES)
    shutil.copytree(
        EXAMPLES / "backend-template" / "fly_backend_template",
        site.folder / "fly_backend_template",
    )
    (row, *_) = json.loads(site.ok("fly-link", "--list-plugins", "--json"))
    assert all(len(row[kind]) == 1 for kind in KINDS)
    on = "--plugin=outside"
    module = site.ok("fly-trace", on, EXAMPLES / "vector_add.py")
    own = site.ok("fly-opt-py", on, "--target", "mine", input=module)
    assert b'"target-cpu"="gfx942"' in own
    words = ("--backend", "template", "--target", "gfx942")
    ll = site.ok("fly-opt-py", on, *words, input=module)
    assert b'"amdgpu-waves-per-eu"="1,4"' in ll
    done = site.run("fly-llc", on, "--insert", "pre-emit=count", input=ll)
    assert done.stderr == b"count: True\n"
    image = site.ok("fly-link", on, input=done.stdout)
    arrays = (f"{name}=zeros(100,f32)" for name in "AB")
    done = site.run("fly-run", "-", on, "--device", "loud", *arrays, input=image)
    assert b"loud: opened" in done.stdout + done.stderr
    drawn = site.ok(
        "fly-opt-py", on, "--draw-layout", "(4,8):(1,4)", "--draw-with", "picture=size vector=2"
    )
    assert drawn == b"<svg>(4,8):(1,4) 2</svg>"
    # Without the plugin there is none of these.
    for command in (
        ("fly-opt-py", "--target", "mine"),
        ("fly-opt-py", *words),
        ("fly-llc", "--insert", "pre-emit=count"),
        ("fly-opt-py", "--draw-layout", "(4,8):(1,4)", "--draw-with", "picture=size"),
    ):
        site.error(*command, input=ll if command[0] == "fly-llc" else module)


def test_pictures_by_name():
    plain = str(fly_draw.draw("(4,8):(1,4)"))
    assert str(fly_draw.draw("(4,8):(1,4)", picture="layout")) == plain
    with pytest.raises(ValueError, match="is neither a tiled copy nor an MMA"):
        fly_draw.draw("(4,8):(1,4)", picture="operation")
    with pytest.raises(ValueError, match="there is no picture 'nix'; the pictures are layout,"):
        fly_draw.draw("(4,8):(1,4)", picture="nix")
    with pytest.raises(ValueError, match="is not a layout"):
        fly_draw.draw(
            "!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>", picture="layout"
        )

"""What is active after a sequence of requests, and the errors of requests."""

from __future__ import annotations

import re
import sys

import fly_plugin
import pytest
from fly_common.errors import FlyError, MissingError, UsageError
from fly_plugin import manifest
from fly_plugin.activation import Request, activate, in_environment
from fly_plugin.manifest import API, Plugin
from plugins import ROOT


def of(*names: str | Plugin, by: str = "--plugin"):
    return [Request(name, by) for name in names]


def ids(*names: str | Plugin) -> list[str]:
    return [one.id for one in activate(of(*names))]


def refused(*names: str | Plugin) -> FlyError:
    with pytest.raises(FlyError) as caught:
        activate(of(*names))
    return caught.value


def test_order_is_that_of_the_first_request(here):
    for name in "abc":
        here.install(name)
    assert ids("b", "a", "b") == ["b", "a"]
    assert ids("a", "+c", "-a", "b") == ["c", "b"]
    assert ids("a", "b", "-a", "a") == ["b", "a"]
    assert ids("a", "-a") == []
    assert ids("pkg_c:PLUGIN", "a", "-c") == ["a"]
    assert ids("pkg_c:PLUGIN", "c", "a") == ["c", "a"]
    assert ids("-a") == []  # a plugin that is installed may be removed before anything adds it


def test_the_environment_comes_first(here, monkeypatch):
    for name in "abc":
        here.install(name)
    monkeypatch.setenv("FLY_PLUGINS", "c, a")
    made = activate([*in_environment(), *of("b", "-a")])
    assert [(one.id, one.by) for one in made] == [("c", "FLY_PLUGINS"), ("b", "--plugin")]


@pytest.mark.parametrize(("name", "shown"), [("nix", "nix"), ("+nix", "nix"), ("-nix", "-nix")])
def test_an_unknown_id(here, name, shown):
    here.install("a")
    error = refused(name)
    assert isinstance(error, UsageError)
    assert error.message == f"there is no plugin '{shown}'"
    assert error.hint is not None
    assert error.hint.startswith("the installed plugins: a;")


def test_only_what_is_active_is_imported(here):
    here.install("good")
    here.install("broken", source="raise RuntimeError('no')")
    assert ids("good") == ["good"]
    assert "pkg_broken" not in sys.modules
    assert ids("broken", "good", "-broken") == ["good"]
    assert "pkg_broken" not in sys.modules


def test_a_broken_plugin_is_one_error(here):
    here.install("broken", source="import nothing_like_this")
    error = refused("broken")
    assert isinstance(error, MissingError)
    assert error.message == (
        "plugin 'broken' (dist-broken 1.0): pkg_broken:PLUGIN: ModuleNotFoundError: No module named"
        " 'nothing_like_this'"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("PLUGIN = 3", "is a int, not a fly_plugin.manifest.Plugin"),
        ("", "AttributeError: module 'pkg_one' has no attribute 'PLUGIN'"),
        (
            "from fly_plugin.manifest import Plugin\nPLUGIN = Plugin(id='other')",
            "has the id 'other'",
        ),
    ],
)
def test_an_entry_point_of_something_else(here, source, message):
    here.package("one", "pkg_one:PLUGIN", source)
    assert message in refused("one").message


def test_another_api_names_both(here):
    here.install("old", f"api={API + 1}")
    assert refused("old").message == (
        "plugin 'old' (dist-old 1.0): pkg_old:PLUGIN: it is written for version"
        f" {API + 1} of the plugin interface, and this is fly-filters with version {API}"
    )


def test_two_packages_with_one_id(here):
    here.install("one")
    here.advertise("one", "pkg_other:PLUGIN", "dist_other")
    error = refused("one").message
    assert "dist-one 1.0 (pkg_one:PLUGIN)" in error
    assert "dist-other 1.0 (pkg_other:PLUGIN)" in error


def test_two_records_with_one_id(here):
    here.install("one")
    assert refused("one", "pkg_one:PLUGIN", Plugin(id="one", version="2")).message.startswith(
        "two plugins have the id 'one': "
    )


@pytest.mark.parametrize("table", ["passes", "dialects", "namespaces", "targets", "backends"])
def test_a_name_that_two_plugins_define(table):
    value = "some_module" if table == "namespaces" else "m:X"
    one, two = (Plugin(id=name, version="1", **{table: {"mine": value}}) for name in "ab")
    message = refused(one, two).message
    kind = "pass" if table == "passes" else table[:-1]
    assert message == (
        f"plugin 'a' (a record 1) and plugin 'b' (a record 1) both define the {kind} 'mine'"
    )


@pytest.mark.parametrize(
    ("table", "name", "owner"),
    [
        ("passes", "fly-canonicalize", "fly-opt-py"),
        ("passes", "convert-fly-to-rocdl", "fly-opt-py"),
        ("passes", "fly-emit-llvm", "fly-opt-py"),
        ("passes", "cse", "MLIR"),
        ("filters", "peephole", "fly-llc"),
        ("targets", "gfx942", "fly-filters"),
        ("backends", "rocm", "fly-filters"),
    ],
)
def test_a_name_that_the_project_defines(table, name, owner):
    message = refused(Plugin(id="a", version="1", **{table: {name: "m:X"}})).message
    assert message.startswith("plugin 'a' (a record 1) defines the ")
    assert message.endswith(f" '{name}', which {owner} defines too")


@pytest.mark.parametrize(
    ("slot", "hint"),
    [
        ("opt.begn", "did you mean opt.begin"),
        ("llc.pre-rä", "did you mean llc.pre-ra"),
        ("nowhere", "--list-slots lists the slots"),
    ],
)
def test_a_slot_that_does_not_exist(slot, hint):
    error = refused(Plugin(id="a", slots={slot: "m:x"}))
    assert error.message == f"plugin 'a' (a record 0): there is no slot '{slot}'"
    assert error.hint is not None
    assert error.hint.startswith(hint)


def test_what_a_plugin_requires():
    a, b = Plugin(id="a", version="1", requires=("b",)), Plugin(id="b")
    assert ids(a, b) == ["a", "b"]
    error = refused(a)
    assert (error.message, error.hint) == (
        "plugin 'a' (a record 1) requires the plugin 'b', which is not active",
        "add --plugin=b",
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "Hello"}, "'Hello' can't be the id of a plugin"),
        ({"id": "cache"}, "'cache' can't be the id of a plugin"),
        ({"id": "a", "dialects": {"arith": "m:X"}}, "can't define the dialect 'arith'"),
        ({"id": "a", "dialects": {"fly_x": "m:X"}}, "can't define the dialect 'fly_x'"),
        ({"id": "a", "dialects": {"a-b": "m:X"}}, "a name has lower case, digits and '_'"),
        ({"id": "a", "passes": {"a-b": "m"}}, "'m', which is not package.module:NAME"),
        ({"id": "a", "namespaces": {"a": "m:X"}}, "refers to 'm:X', not to a module"),
    ],
)
def test_a_record_that_is_not_well_formed(fields, message):
    assert message in refused(Plugin(**fields)).message


def test_plugins_are_active_in_a_context_only():
    made = activate(of(Plugin(id="a")))
    assert fly_plugin.active() == ()
    with fly_plugin.activated(made):
        assert fly_plugin.active() == made
    assert fly_plugin.active() == ()


def test_the_dialects_of_mlir_are_known():
    """The names that a plugin can't take are those that the bindings register."""
    import pkgutil

    from fly_dialect.bindings import module
    from fly_plugin.manifest import _MLIR

    modules = (one.name for one in pkgutil.iter_modules(module("dialects").__path__))
    known = {name[1:].removesuffix("_ops_gen") for name in modules if name.endswith("_ops_gen")}
    # Extensions of the dialect transform have modules of their own.
    known = {name for name in known if "transform" not in name or name == "transform"}
    assert "arith" in known
    assert known - {"torch"} <= _MLIR


def test_ids_leave_the_projects_variables_alone():
    """No option of a plugin has the name of a variable that the sources read."""
    read = set()
    for folder in ("fly", "common", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            read |= set(re.findall(r'"(FLY_[A-Z]+(?:_[A-Z]+)+)"', path.read_text()))
    assert "FLY_CACHE_DIR" in read
    ids = {name.split("_")[1].lower() for name in read}
    assert ids <= set(manifest._RESERVED)

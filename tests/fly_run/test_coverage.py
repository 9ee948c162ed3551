"""Every instruction of a target is executed, or stands on the list of those that are not, with a
reason; there is no third state."""

import functools

import pytest
from fly_run.emulator import coverage, unsupported
from fly_run.emulator.coverage import TARGETS
from fly_run.emulator.instruction import split_mnemonic

# Mnemonics without encoding suffix that the emulator executes at least.
IMPLEMENTED = {"gfx90a": 1040, "gfx942": 1080, "gfx950": 1175, "gfx1100": 880, "gfx1201": 1000}


@functools.cache
def of(target: str) -> coverage.Coverage:
    return coverage.coverage(target)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_missing_is_on_the_list(target):
    unexplained = [name for name in sorted(of(target).missing) if not unsupported.reason(name)]
    assert not unexplained


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_implemented_is_not_on_the_list(target):
    found = of(target)
    plain = found.plain_implemented
    # A pattern without suffix speaks of all encodings.
    stale = [name for name in sorted(found.implemented | plain) if unsupported.reason(name)]
    assert not stale


def test_every_pattern_speaks_of_an_instruction():
    missing = set().union(*(of(target).missing for target in TARGETS))
    patterns = [pattern for many in unsupported.REASONS.values() for pattern in many]
    idle = [p for p in patterns if not any(unsupported.matches(p, name) for name in missing)]
    assert not idle


@pytest.mark.parametrize("target", TARGETS)
def test_the_number_of_instructions(target, capsys):
    found = of(target)
    with capsys.disabled():
        print(f"\n{next(coverage.report(target))}", end=" ")
    assert len(found.plain_implemented) >= IMPLEMENTED[target] > 500


def test_the_report_names_what_is_missing_and_why():
    lines = list(coverage.report("gfx942"))
    assert "    ds_gws_barrier" in lines
    assert "  global wave sync: a resource of the driver's:" in lines
    shown = {line.strip() for line in lines[1:] if line.startswith("    ")}
    assert {split_mnemonic(name)[0] for name in shown} == {
        split_mnemonic(name)[0] for name in of("gfx942").missing
    }


def test_an_unknown_target_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["coverage", "gfx803"])
    assert coverage.main() == 2
    assert "gfx803" in capsys.readouterr().out

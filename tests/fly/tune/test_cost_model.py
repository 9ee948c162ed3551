"""The cost model: its formula by hand, and what it must not do."""

from __future__ import annotations

import pytest
from fly_common.record import replace
from fly_target import registry

from fly.tune import cost_model
from fly.tune.cost_model import Work, cost

# One workgroup of four waves on MI300X: ten vector instructions a wave, four others.
ONE = Work("gfx942", workgroups=1, waves=4, working=4, lanes=64, vector=40, other=16, resident=8)
WAVES = 4 * 304 * 80


def test_a_wave_by_itself():
    """Ten times 4 cycles, and four times 4."""
    assert cost(ONE) == cost_model.Cost(56, "latency")
    more = replace(ONE, global_waits=4, local_waits=8, barriers=4, lds_cycles=32, lines=8)
    assert cost(more).cycles == 56 + 500 + 2 * 64 + 32 + 8 + 8 / 4 * 128 / 64


def test_a_wave_of_32_lanes():
    one = replace(ONE, target="gfx1100", lanes=32, shared_simds=4, units=2)
    assert cost(one).cycles == 10 + 4
    assert cost(replace(one, lanes=64)).cycles == 20 + 4
    assert cost(replace(one, transcendental=40)).cycles == 10 + 40 + 4


def test_a_unit_that_is_busy():
    """304 × 80 workgroups: each unit has 80, of which it holds 8 at once."""
    full = replace(ONE, workgroups=304 * 80, waves=WAVES, working=WAVES)
    vector = replace(full, vector=full.waves * 10, other=0)
    # 80 workgroups of 4 waves on 4 SIMDs, ten instructions of 4 cycles.
    assert cost(vector) == cost_model.Cost(80 * 10 * 4, "vector")
    assert cost(replace(vector, vector=0, lds_cycles=full.workgroups * 100)).limit == "LDS"
    lines = replace(vector, vector=0, lines=full.workgroups * 100)
    assert cost(lines) == cost_model.Cost(80 * 100 * 2, "memory")
    flops = replace(vector, vector=0, matrix_flops=full.waves * 16384.0)
    assert cost(flops) == cost_model.Cost(80 * 16384 / 512, "matrix")


def test_few_workgroups_at_once_do_not_hide_latency():
    full = replace(ONE, workgroups=304 * 80, waves=WAVES, working=WAVES)
    waiting = replace(full, vector=0, other=0, global_waits=full.waves)
    assert cost(replace(waiting, resident=8)).cycles == 80 / 8 * 500
    assert cost(replace(waiting, resident=2)).cycles == 80 / 2 * 500


def test_waves_that_end_at_once_do_not_make_the_others_faster():
    idle = replace(ONE, workgroups=1, waves=4, working=1, vector=10, other=4)
    assert cost(idle) == cost(ONE)


def test_no_workgroups_cost_nothing():
    assert cost(replace(ONE, workgroups=0, waves=0)).cycles == 0


@pytest.mark.parametrize(
    "field", ["vector", "transcendental", "other", "lds_cycles", "lines", "global_waits",
              "local_waits", "barriers", "matrix", "matrix_flops"],
)  # fmt: skip
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1201"])
def test_more_work_never_costs_less(field, target):
    chip = registry.find(target)
    for workgroups in (1, 64, 4096):
        waves = 4 * workgroups
        work = replace(ONE, target=target, workgroups=workgroups, waves=waves, working=waves)
        work = replace(work, lanes=chip.wave_size)
        before = cost(work).cycles
        after = cost(replace(work, **{field: getattr(work, field) + 1000 * workgroups})).cycles
        assert after > before


def test_every_chip_of_the_emulator_has_its_figures():
    emulated = [one for one in map(registry.find, registry.names()) if one.emulated]
    # No data sheet of CDNA5 is published: the model takes its figures for other chips.
    assert {one.name for one in emulated} - cost_model.COMPUTE_UNITS.keys() == {"gfx1250"}
    assert {one.family for one in emulated} - cost_model.MATRIX_FLOPS.keys() == {"CDNA5"}

"""Some random calls, as of `python -m kernel_cases`, which runs more of them."""

from __future__ import annotations

import pytest
from kernel_cases import case
from kernel_cases.__main__ import MAKERS, wrong


@pytest.mark.heavy
@pytest.mark.parametrize("name", MAKERS)
def test_random_calls(target, name):
    found = [wrong(20, number, [name], target, 0.2) for number in range(2)]
    assert not any(found), found


@pytest.mark.heavy
def test_a_wrong_result_is_found(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "gfx942")
    monkeypatch.setenv("FLY_DEVICE", "emulator")
    judge = case.judge

    def by_another_reference(found, exact, *more, **options):
        judge(found, lambda *given: exact(*given) * 1.1, *more, **options)

    monkeypatch.setattr(case, "judge", by_another_reference)
    calls = (wrong(1, number, ["rows.softmax"], "gfx942", 0.0) for number in range(9))
    assert "AssertionError" in next(filter(None, calls), "")

"""Some random calls, as of `python -m kernel_cases`, which runs more of them."""

from __future__ import annotations

import pytest
from kernel_cases.__main__ import MAKERS, wrong


@pytest.mark.heavy
@pytest.mark.parametrize("name", MAKERS)
def test_random_calls(target, name):
    found = [wrong(20, number, [name], target, 0.2) for number in range(2)]
    assert not any(found), found


@pytest.mark.parametrize("name", ["rows.softmax", "attention.paged"])
def test_a_wrong_result_is_found(target, name, monkeypatch):
    """By a reference that is not right."""
    from kernel_cases import case

    judge = case.judge
    monkeypatch.setattr(
        case,
        "judge",
        lambda found, exact, *more, **options: judge(
            found, lambda *given: exact(*given) * 1.1, *more, **options
        ),
    )
    found = [wrong(1, number, [name], target, 0.0) for number in range(4)]
    assert any("AssertionError" in one for one in found if one), found

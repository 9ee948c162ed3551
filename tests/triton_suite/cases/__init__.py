"""All cases."""

from __future__ import annotations

from triton_suite.case import Case
from triton_suite.cases.atomics import atomics
from triton_suite.cases.attention import attentions
from triton_suite.cases.lanes import between_lanes
from triton_suite.cases.numbers import numbers
from triton_suite.cases.products import products
from triton_suite.cases.rows import rows


def every() -> list[Case]:
    return [*rows(), *products(), *attentions(), *between_lanes(), *atomics(), *numbers()]

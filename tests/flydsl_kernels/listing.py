"""The cases of all modules here."""

from __future__ import annotations

import importlib

from flydsl_kernels.case import CASES, Case
from flydsl_kernels.run_one import HERE, MODULES


def all_cases() -> list[Case]:
    """Every case, in the order of the modules."""
    for module in MODULES:
        if (HERE / f"{module}.py").exists():
            importlib.import_module(f"flydsl_kernels.{module}")
    return CASES

"""The cases of all modules here."""

from __future__ import annotations

import importlib
from pathlib import Path

from flydsl_kernels.case import CASES, Case
from flydsl_kernels.run_one import HERE, MODULES


def all_cases() -> list[Case]:
    """Every case, in the order of the modules."""
    for module in MODULES:
        if (HERE / f"{module}.py").exists():
            importlib.import_module(f"flydsl_kernels.{module}")
    return CASES


def without_cases() -> dict[str, str]:
    """The files of kernels that have no case, and why."""
    found, reason = {}, ""
    for line in (HERE / "without.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        else:
            found[line] = reason
    return found


def unknown_files(kernels: Path) -> list[str]:
    """The files in FlyDSL's folder `kernels` with neither a case nor a reason."""
    known = {one.file for one in all_cases()} | without_cases().keys()
    files = (one.relative_to(kernels).as_posix() for one in kernels.rglob("*.py"))
    return sorted(one for one in files if one not in known and not one.endswith("__init__.py"))

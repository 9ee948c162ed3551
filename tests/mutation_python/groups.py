"""The modules to mutate, and the tests that must detect the mutants. Update it when a module
moves."""

from __future__ import annotations

import importlib.util
import pkgutil
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Group:
    """`modules` are dotted names; a package stands for all its modules. `tests` are patterns of
    paths in `tests/` that match files or folders."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def module_names(self) -> list[str]:
        """Returns the modules, in order; a package's `__init__` is excluded."""
        found: list[str] = []
        for name in self.modules:
            spec = importlib.util.find_spec(name)
            if spec is None:
                raise SystemExit(f"mutation: error: {name}: no such module: see {__file__}")
            if spec.submodule_search_locations is None:
                found.append(name)
                continue
            places = list(spec.submodule_search_locations)
            found += [
                one.name
                for one in pkgutil.walk_packages(places, f"{name}.")
                if not one.ispkg and one.name not in found
            ]
        return found

    def test_paths(self) -> list[Path]:
        found = []
        for pattern in self.tests:
            matching = sorted(TESTS.glob(pattern))
            if not matching:
                raise SystemExit(f"mutation: error: no tests/{pattern}: see {__file__}")
            found += matching
        return found


GROUPS = (
    Group(
        "program",
        (
            "fly_host.program",
            "fly_host.text",
            "fly_host.validation",
            "fly_host.integers",
            "fly_host.readers.values",
            "fly_host.readers.interpreter",
            "fly_host.readers.python_code",
            "fly_host.readers.python_text",
        ),
        (
            "fly_host/test_text.py",
            "fly_host/test_validation.py",
            "fly_host/readers/test_values.py",
            "fly_host/test_python_code.py",
            "fly_host/test_readers.py",
            "fly_host/test_ahead.py",
            "fly_host/test_listing.py",
            "fly_opt/passes/test_extraction.py",
            "fly_opt/passes/test_host_steps.py",
        ),
    ),
    Group(
        "domains",
        (
            "fly_host.graph",
            "fly_host.bounds",
            "fly_host.domains.domain",
            "fly_host.domains.axes",
            "fly_host.domains.inference",
            "fly_host.domains.contiguity",
        ),
        (
            "fly_host/test_graph.py",
            "fly_host/test_bounds.py",
            "fly_host/domains/test_domain.py",
            "fly_host/domains/test_inference.py",
            "fly_host/domains/test_contiguity.py",
            "fly_host/domains/test_nvfuser_cases.py",
            "fly_host/test_chains.py",
        ),
    ),
    Group(
        "binding",
        (
            "fly_run.launch.checking",
            "fly_run.launch.arrays.tensors",
            "fly_run.launch.parameters",
            "fly_run.launch.limits",
            "fly_image.limits",
            "fly_host.refusals",
            "fly_run.launch.arrays.memory",
            "fly_run.launch.packing",
            "fly_run.launch.machine",
            "fly_run.launch.execution",
        ),
        (
            "fly_host/test_refusals.py",
            "fly_image/test_limits.py",
            "fly_run/launch/test_arguments.py",
            "fly_run/launch/test_argument_edges.py",
            "fly_run/launch/test_launch.py",
            "fly_run/launch/test_machine.py",
            "fly_run/shell/test_arguments.py",
            "fly/host/test_host_programs.py",
        ),
    ),
    Group(
        "store",
        ("fly_store.store",),
        ("fly_store/**/test_store*.py", "fly/**/test_chain.py"),
    ),
    Group(
        "dependencies",
        ("fly.dependencies",),
        (
            "fly/dependencies/test_bytecode.py",
            "fly/dependencies/test_dependency_hash.py",
            "fly/dependencies/test_dependency_imports.py",
            "fly/dependencies/test_dependency_modules.py",
            "fly/dependencies/test_digests_of_values.py",
            "fly/chains/test_exact_cache.py",
            "fly/dependencies/test_kinds_of_values.py",
            "fly/dependencies/test_classes.py",
            "fly/call/arrays/test_marked.py",
            "fly/dependencies/test_reach.py",
            "fly/dependencies/test_different_functions.py",
            "fly/dependencies/test_stable_names.py",
        ),
    ),
    Group(
        "chains",
        ("fly.chains", "fly.plugins", "fly.backends", "fly.cache"),
        (
            "fly/chains/test_ahead.py",
            "fly/chains/test_backends.py",
            "fly/chains/test_cache.py",
            "fly/chains/test_chain.py",
            "fly/chains/test_pipe.py",
            "fly/chains/test_stages.py",
            "fly/chains/test_tuning.py",
            "fly_plugin/test_chain.py",
            "fly_plugin/test_page.py",
            "fly_plugin/test_template.py",
        ),
    ),
    Group(
        "calls",
        ("fly.call", "fly.torch", "fly.expr"),
        ("fly", "fly_link/shared/test_building.py", "fly_plugin/test_chain.py"),
    ),
)

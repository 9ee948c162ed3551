"""A plugin of pytest: FlyDSL's tests that use `printf` fail unless they print the right text.

FlyDSL's tests launch these kernels, and do not look at what they print. The text here is what
their sources say. Lines of lanes and iterations come in order: each kernel has one wave.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

UNIT = "unit/"
LOOPS = UNIT + "test_for_auto_iter_args.py::TestForAutoIterArgs::"
BOUND = UNIT + "test_kernel_range_dynamic_upper_bound.py::TestKernelRangeDynamicUpperBound::"
SHARED = UNIT + "test_kernel_dynamic_smem_types.py::TestKernelDynamicSmemTypes::"

# The test's name in the folder tests → the lines that its kernel prints.
PRINTED: dict[str, list[str]] = {
    LOOPS + "test_simple_acc": ["acc=4"],
    LOOPS + "test_multi_vars": ["a=3 b=97"],
    LOOPS + "test_no_iter_args": ["i=0", "i=1", "i=2"],
    LOOPS + "test_range_3args": ["acc=4"],
    **{
        f"{BOUND}test_range_kernel_dynamic_upper_bound[{count}]": [
            f"kernel loop_count={count}",
            *(f"helper i={i}" for i in range(count)),
        ]
        for count in (1, 4, 8)
    },
    **{
        f"{SHARED}test_dynamic_smem_{kind}[{size}]": ["[smem_probe] tid=0"]
        for kind in ("fx_int32", "constexpr_int", "python_int")
        for size in (0, 64, 128)
    },
    "system/test_control_flow_compile.py::"
    "test_control_flow_kernel_snippet_compiles_without_error": [
        f"[kernel] bid=0, tid={lane}" for lane in range(3)
    ],
}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    wanted = PRINTED.get(item.nodeid.removeprefix("tests/"))
    report = outcome.get_result()  # type: ignore[attr-defined]
    if wanted is None or call.when != "call" or report.outcome != "passed":
        return
    found = report.capstdout.splitlines()
    if found != wanted:
        report.outcome = "failed"
        report.longrepr = f"prints {found}, not {wanted}"

"""The examples under the plugins that check: nothing is reported, no byte of a result changes.

Some of them, and with FLY_TEST_TARGETS=every (`make targets`) all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from plugins import CHECKS, EXAMPLES, SHIPPED

USUAL = ("histogram", "matmul", "row_softmax", "transpose")

# Prints a digest of what each call of a compiled function leaves in its arguments and results.
PROGRAM = """
import hashlib, json, runpy, sys
import numpy as np
from fly_common.errors import InputError
from fly.call.function import JitFunction as Function

found = []

def noted(value):
    if isinstance(value, np.ndarray):
        found.append(hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16])
    elif isinstance(value, (tuple, list)):
        for one in value:
            noted(one)

original = Function.__call__

def called(self, *arguments, **keywords):
    result = original(self, *arguments, **keywords)
    if len(found) < 200:
        noted(arguments)
        noted(result)
    return result

Function.__call__ = called
results = {}
paths = sys.argv[1:]
for path in paths:
    found.clear()
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
        results[path] = list(found)
    except InputError as error:
        text = str(error)
        if "instruction" not in text and "is for other hardware" not in text:
            raise
        results[path] = text.splitlines()[0]
print(json.dumps(results))
"""


@pytest.fixture
def examples() -> list[str]:
    found = sorted(map(str, EXAMPLES.glob("*.py")))
    assert len(found) > 10
    if os.environ.get("FLY_TEST_TARGETS") == "every":
        return found
    return [path for path in found if Path(path).stem in USUAL]


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90a"])
def test_the_examples(target, examples, checks, tmp_path):
    paths = [str(checks.folder), *(str(SHIPPED / name) for name in CHECKS)]
    variables = {
        "PYTHONPATH": ":".join(paths),
        "FLY_TARGET": target,
        "FLY_DEVICE": "cpu" if target.startswith("sm_") else "emulator",
    }
    results = []
    for plugins in ("", "bounds,sanitize"):
        done = checks.ok(
            "python", "-c", PROGRAM, *examples, cwd=tmp_path, FLY_PLUGINS=plugins, **variables
        )
        results.append(json.loads(done.splitlines()[-1]))
    plain, checked = results
    assert plain == checked
    ran = sum(isinstance(one, list) and len(one) > 1 for one in plain.values())
    assert ran >= (11 if len(examples) > len(USUAL) else len(USUAL))

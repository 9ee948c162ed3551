"""Damaged code objects: an error line or a clean run, never a traceback, a crash or a hang.

The cases run in one child process, which names each before it starts it, so that a crash is a
failure that says which case it was.
"""

import subprocess
import sys

import pytest

CASES = 2000
SECONDS = 240  # far more than the cases need

CHILD = """
import io, pathlib, random, resource, sys, time
import numpy as np
from fly_common.errors import FlyError
from fly_image.amd.code_object import CodeObject
from fly_run.launch import binding, launch
from fly_run.shell import inspect
from fly_run.launch import execution
from fly_run.devices.options import Options
from fly_run.devices.registry import open_device

whole, cases = pathlib.Path(sys.argv[1]).read_bytes(), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # gigabytes are a failure
plan = CodeObject.parse(whole).plan

def try_one(data):
    code = CodeObject.parse(data, "x.hsaco")
    inspect.text(code, "x.hsaco"), inspect.as_json(code)
    n = 200
    given = {"A": np.ones(n, np.float32), "B": np.ones(n, np.float32), "C": np.zeros(n, np.float32)}
    opened = open_device("emulator", code.target, Options(max_instructions=5000))
    try:
        if code.plan is not None:
            execution.run(binding.bind(code.plan, code, given), opened.load(code), opened)
        else:
            launch.launch(code, None, 4, 64, [*given.values(), np.int64(n)], device=opened)
    finally:
        opened.close()

def damaged(generator, case):
    if case < 16:
        return whole[: len(whole) * case // 16]
    made = bytearray(whole)
    if case % 3:
        at = [generator.randrange(len(made)) for _ in range(generator.choice((1, 1, 2, 8, 64)))]
    else:  # descriptor, metadata, code: what lies in loaded segments and is not mere names
        at = [generator.randrange(0x200, 0x800) for _ in range(generator.choice((1, 2, 4)))]
    for index in at:
        made[index] = generator.choice((made[index] ^ 1 << generator.randrange(8), 0, 0xFF,
                                        generator.randrange(256)))
    return bytes(made)

tally = {"ran": 0, "refused": 0}
for case in range(cases):
    generator = random.Random(case)
    print("case", case, flush=True)
    started = time.monotonic()
    try:
        try_one(damaged(generator, case))
        tally["ran"] += 1
    except FlyError as error:
        line = error.render("fly-run").splitlines()[0]
        assert line.startswith("fly-run: error: ") and len(line) < 2000, line
        assert "internal" not in line, line
        tally["refused"] += 1
    assert time.monotonic() - started < 20, f"case {case} took {time.monotonic() - started} s"
print("done", tally["ran"], tally["refused"])
"""


@pytest.mark.parametrize("name", ["add"])
def test_damage_is_an_error_line_or_a_clean_run(assemble, add_plan, tmp_path, name):
    path = tmp_path / "whole.hsaco"
    path.write_bytes(assemble(name, manifest=add_plan))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CHILD, str(path), str(CASES)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 0, f"{last}\n{done.stderr[-3000:]}"
    word, ran, refused = last.split()
    # Both must be common, or the test looks at one thing only.
    assert word == "done"
    assert int(ran) > CASES / 10
    assert int(refused) > CASES / 10

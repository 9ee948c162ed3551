"""A plugin that is installed and not asked for costs nothing: the tools import the same modules,
open the same files and read the same folders as without it, and so does a call of @fly.jit."""

from __future__ import annotations

import json

import pytest
from plugins import EXAMPLES, Site

# Counts what a program asks of the system and of the import machinery.
COUNTED = """
import json, os, sys
seen = []
def hook(event, args):
    if event in ("open", "import", "os.listdir", "os.scandir", "subprocess.Popen"):
        seen.append(f"{event} {args[0]}")
sys.addaudithook(hook)
sys.argv = json.loads(sys.argv[1])
def report(*_):
    sys.stderr.write("COUNTED" + json.dumps([seen, sorted(sys.modules)]))
    sys.stderr.flush()
leave = os._exit
os._exit = lambda code: (report(), leave(code))  # how a child process for MLIR ends
try:
    exec(compile(%r, "<program>", "exec"))
except SystemExit as end:
    assert not end.code, end.code
report()
"""
TOOL = "from {}.cli import main; main()"
CALL = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import vector_add
a = np.ones(100, np.float32)
assert (vector_add.vector_add(a, a) == 2).all()
"""


def counted(
    site: Site, program: str, *words: object, input: bytes = b"", **env: str
) -> tuple[list[str], list[str], bytes]:
    """What a program did, the modules it imported, and what it printed."""
    argv = json.dumps(["program", *map(str, words)])
    done = site.run("python", "-c", COUNTED % program, argv, input=input, **env)
    _, found, report = done.stderr.decode().rpartition("COUNTED")
    assert found, done.stderr.decode()
    seen, modules = json.loads(report)
    return seen, modules, done.stdout


def quiet(seen: list[str]) -> list[str]:
    """The events without the names of temporary files, which are random."""
    return [one for one in seen if "/tmp" not in one.partition(" ")[2] or ".dist-info" in one]


@pytest.fixture
def inputs(site) -> dict[str, tuple[tuple[object, ...], bytes]]:
    module = site.ok("fly-trace", EXAMPLES / "vector_add.py")
    ll = site.ok("fly-opt-py", "--target", "gfx942", input=module)
    obj = site.ok("fly-llc", input=ll)
    return {
        "fly_trace": ((EXAMPLES / "vector_add.py",), b""),
        "fly_opt": (("--target", "gfx942"), module),
        "fly_llc": ((), ll),
        "fly_link": ((), obj),
    }


@pytest.mark.parametrize("tool", ["fly_trace", "fly_opt", "fly_llc", "fly_link"])
def test_a_tool(site, inputs, tool):
    words, data = inputs[tool]
    program = TOOL.format(tool)
    counted(site, program, *words, input=data)  # what is compiled once is in caches now
    before = counted(site, program, *words, input=data)
    site.install("loud", source="raise SystemExit('imported')")
    site.install("other", "slots={'opt.end': 'pkg_other.f:X'}", f="X = 'cse'")
    after = counted(site, program, *words, input=data)
    assert quiet(after[0]) == quiet(before[0])
    assert after[1] == before[1]
    assert after[2] == before[2]
    plugin = [name for name in after[1] if name.startswith("fly_plugin")]
    assert plugin == ["fly_plugin"]
    assert not any("entry_points" in one or ".dist-info" in one for one in after[0])
    # The test can fail: an active plugin imports more, and reads the metadata.
    asked = counted(site, program, "--plugin=other", *words, input=data)
    assert "fly_plugin.activation" in asked[1]
    assert any(".dist-info" in one for one in asked[0])


def test_a_call_of_a_function(site, handlers, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / handlers.name).symlink_to(handlers)
    env = {"FLY_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        before = counted(site, CALL, EXAMPLES, **env)
    site.install("loud", source="raise SystemExit('imported')")
    after = counted(site, CALL, EXAMPLES, **env)
    assert quiet(after[0]) == quiet(before[0])
    assert after[1] == before[1]
    assert [name for name in after[1] if name.startswith("fly_plugin")] == ["fly_plugin"]
    assert [name for name in after[1] if name.startswith("fly.chains.plugins")] == []

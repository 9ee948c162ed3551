"""An error in a helper names the calls that lead there, and so do the locations of its ops."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fly_opt.pipeline.options import Options
from fly_opt.pipeline.stage import compile as lower
from fly_trace.session import op_locations
from fly_trace.session.trace import trace_file
from trace_helpers import kernel_source, refusal

INNER = "def inner(A, i):\n    {body}\n\ndef outer(A, i):\n    return inner(A, i)\n"


def calls(said: str) -> list[str]:
    return re.findall(r"^  called .*", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return A[1.5]", "must be an integer"),
        ("return {}[3]", "KeyError: 3"),
        ("return unknown", "NameError"),
        ("return [A[j] for j in range(2.5)][0]", "float"),
        ("return (lambda j: A[j])(1.5)", "must be an integer"),
    ],
)
@pytest.mark.parametrize(
    "use", ["A[0] = outer(A, n)", "if n > 3:\n    for i in range(n):\n        A[i] = outer(A, i)"]
)
def test_calls_of_an_error(body, message, use, tmp_path):
    said = refusal(kernel_source(use, INNER.format(body=body)), tmp_path)
    assert message in said.splitlines()[0]
    found = calls(said)
    if "lambda" in body:
        assert found.pop(0).startswith("  called in inner at k.py:5:")
    line = 12 + use.count("\n")
    assert found[0] == "  called in outer at k.py:8:12: return inner(A, i)"
    assert re.fullmatch(rf"  called in kernel at k\.py:{line}:\d+: A\[.*outer\(A, .*", found[1])
    assert len(found) == 2


def test_an_error_of_the_kernel_itself_has_none(tmp_path):
    assert calls(refusal(kernel_source("A[1.5] = x"), tmp_path)) == []
    assert calls(refusal(kernel_source("if n > 1:\n    A[1.5] = x"), tmp_path)) == []


def test_an_error_in_a_helper_of_another_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helpers_of_chain.py").write_text("def helper(A):\n    return A[0.5]\n")
    top = "from helpers_of_chain import helper"
    said = refusal(kernel_source("A[0] = helper(A)", top), tmp_path)
    assert "helpers_of_chain.py:2:" in said.splitlines()[0]
    assert calls(said) == ["  called in kernel at k.py:7:12: A[0] = helper(A)"]


def test_json(tmp_path):
    file = tmp_path / "k.py"
    file.write_text(kernel_source("A[0] = outer(A, n)", INNER.format(body="return A[1.5]")))
    code = "from fly_trace.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "k.py", "--diagnostics=json"],
        capture_output=True,
        cwd=tmp_path,
    )
    said = json.loads(done.stderr)
    assert (done.returncode, said["source"], said["file"]) == (1, "fly-trace", "k.py")
    assert said["range"] == {
        "start": {"line": 4, "character": 11},
        "end": {"line": 4, "character": 17},
    }
    assert [one["range"]["start"]["line"] for one in said["related"]] == [7, 11]
    assert [one["message"] for one in said["related"]] == ["called in outer", "called in kernel"]


def traced(body: str, top: str, folder: Path) -> str:
    file = folder / "k.py"
    file.write_text(kernel_source(body, top))
    return trace_file(str(file))


def test_locations_name_the_calls(tmp_path):
    text = traced("A[0] = outer(A, n)", INNER.format(body="return A[i]"), tmp_path)
    (load,) = [line for line in text.splitlines() if "memref.load" in line]
    places = re.findall(r'k\.py":(\d+):(\d+)', load)
    assert places == [("5", "12"), ("8", "12"), ("12", "12")]
    assert 'loc(callsite("' in load
    (store,) = [line for line in text.splitlines() if "memref.store" in line]
    assert "callsite" not in store


def test_two_calls_have_two_locations(tmp_path):
    body = "for _ in fx.range_constexpr(3):\n    A[0] = f(x)\nA[1] = f(x)"
    text = traced(body, "def f(v):\n    return v * 2.0\n", tmp_path)
    products = [line for line in text.splitlines() if "arith.mulf" in line]
    called = [re.findall(r'k\.py":(\d+)', line)[1] for line in products]
    assert called == ["10", "10", "10", "11"]


def test_deep_recursion_has_short_locations(tmp_path):
    top = "def f(v, n):\n    return v if n == 0 else f(v * 2.0, n - 1)\n"
    text = traced("A[0] = f(x, 30)", top, tmp_path)
    places = [line.count('":') for line in text.splitlines() if "arith.mulf" in line]
    assert len(places) == 30
    assert max(places) == op_locations.DEEPEST + 1


def test_an_error_of_a_pass_names_the_calls(tmp_path):
    """A damaged trace, whose error is that of MLIR's verifier."""
    text = traced("A[0] = outer(A, n)", INNER.format(body="return A[i] * 2.0"), tmp_path)
    damaged = re.sub(
        r"arith\.mulf %(\S+), %(\S+) : f32", r'"arith.muli"(%\1, %\2) : (f32, f32) -> f32', text
    )
    with pytest.raises(Exception, match=r"arith\.muli") as caught:
        lower(damaged.encode(), Options(target="gfx942"))
    said = caught.value.render("fly-opt-py").replace(str(tmp_path) + "/", "")
    assert said.startswith("fly-opt-py: error: k.py:5:12: 'arith.muli' op")
    assert calls(said) == [
        "  called at k.py:8:12: return inner(A, i)",
        "  called at k.py:12:12: A[0] = outer(A, n)",
    ]


def test_debug_scopes_of_all_calls(tmp_path):
    top = (
        "def inner(A, i):\n    return A[i] * 2.0\n\ndef middle(A, i):\n    return inner(A, i)\n\n"
        "def outer(A, i):\n    return middle(A, i)\n"
    )
    text = traced("A[0] = outer(A, n)", top, tmp_path)
    ll = lower(text.encode(), Options(target="gfx942", debug_info=True)).decode()
    nodes = dict(re.findall(r"^(!\d+) = !DILocation\((.*)\)$", ll, re.MULTILINE))
    (load,) = [line for line in ll.splitlines() if "fmul" in line]
    at, lines = re.search(r"!dbg (!\d+)", load)[1], []
    while at:
        lines.append(int(re.search(r"line: (\d+)", nodes[at])[1]))
        at = (re.search(r"inlinedAt: (!\d+)", nodes[at]) or [None, None])[1]
    assert lines == [5, 8, 11, 15]

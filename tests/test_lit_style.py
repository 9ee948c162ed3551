"""lit tests are written in what LLVM's FileCheck and its Python port both mean the same by.

The port passes some tests that LLVM's refuses: a misspelt directive, a prefix that no line has, a
NEXT with nothing before it, Python's regular expressions. Such a test would be green by accident on
one of them, so the constructs are refused here. docs/testing.md lists the rules for writers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

LIT = Path(__file__).resolve().parents[1] / "test" / "lit"
SUFFIXES = {".mlir", ".ll", ".mir", ".py", ".test"}
ENDINGS = r"-NEXT|-SAME|-NOT|-EMPTY|-LABEL|-DAG|-COUNT-[1-9]\d*"
FLAGS = r"--(?:check-prefix(?:es)?=\S+|input-file=\S+|match-full-lines|strict-whitespace)|-D\w+=\S+"
ORACLES = r"(?<![\w-])(?:not|cmp|diff)\s|--verify-diagnostics|%PYTHON -c.*\b(?:assert|sys\.exit)\b"
LLVM = {"opt", "llc", "ld.lld"}
SUBSTITUTIONS = {"filecheck", "PYTHON", "examples", "basename_t", *LLVM}


@dataclass(frozen=True)
class Directive:
    line: int
    prefix: str
    ending: str  # "", "-NEXT", …
    literal: bool
    pattern: str


def commands(text: str) -> list[str]:
    """The RUN lines, continued ones joined."""
    runs = re.findall(r"RUN:[ \t]*(.*)", text)
    joined: list[str] = []
    continued = False
    for run in runs:
        if continued:
            joined[-1] += " " + run.rstrip("\\")
        else:
            joined.append(run.rstrip("\\"))
        continued = run.endswith("\\")
    return joined


def filecheck_calls(text: str) -> list[str]:
    """The arguments of each call of FileCheck."""
    call = re.compile(r"(?:%filecheck|(?<![\w/%-])FileCheck)\b([^|;&<>]*)")
    return [match for command in commands(text) for match in call.findall(command)]


def prefixes_of(call: str) -> list[str]:
    named = re.findall(r"--check-prefix(?:es)?=(\S+)", call)
    return [name for names in named for name in names.split(",")] or ["CHECK"]


def directives(text: str, prefixes: set[str]) -> list[Directive]:
    one_of = "|".join(sorted(map(re.escape, prefixes), key=len, reverse=True))
    form = re.compile(rf"(?<![\w-])({one_of})({ENDINGS})?(\{{LITERAL\}})?:[ \t]*(.*)")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if "RUN:" not in line and (match := form.search(line)):
            prefix, ending, literal, pattern = match.groups()
            found.append(Directive(number, prefix, ending or "", bool(literal), pattern))
    return found


def complaints(text: str) -> Iterator[str]:
    """What is wrong with a test, a line each."""
    runs, calls = commands(text), filecheck_calls(text)
    if not runs:
        yield "no RUN line"
    if not calls and not any(re.search(ORACLES, run) for run in runs):
        yield "nothing that can fail: no FileCheck, not, cmp, diff or assert"
    if found := re.search(r"\b(XFAIL|UNSUPPORTED|REQUIRES|ALLOW_RETRIES):", text):
        yield f"{found[1]}: a test runs everywhere or is none"
    for run in runs:
        yield from _complaints_about_a_command(run)
    for call in calls:
        rest = re.sub(rf"\s(?:{FLAGS})(?=\s|$)", " ", f" {call}")
        if rest.split() != ["%s"]:
            yield f"FileCheck is called with {rest.split()}: %s and {FLAGS} only"
    for call in calls:
        prefixes = prefixes_of(call)
        found = directives(text, set(prefixes))
        for prefix in prefixes:
            if not [d for d in found if d.prefix == prefix and d.ending != "-NOT"]:
                yield f"prefix {prefix}: no line says what there must be"
        yield from _complaints_about_directives(found, set(re.findall(r"-D(\w+)=", call)))
    used = {prefix for call in calls for prefix in prefixes_of(call)}
    yield from _misspelt(text, used)


def _complaints_about_a_command(run: str) -> Iterator[str]:
    if found := re.search(r"\|\|\s*true|;\s*true|\$\w|\$\(|not --crash|split-file|(?<!\w)\(", run):
        yield f"{found[0]!r} in a RUN line"
    if re.search(r"(?<![\w%/.-])python3?\b", run):
        yield "python in a RUN line: write %PYTHON"
    for name in re.findall(r"(?<!%)%([A-Za-z][\w.-]*)", run):
        known = re.fullmatch(r"[stSTp](?:[.\-\d].*)?", name) or name.startswith("llvm-")
        if not known and name not in SUBSTITUTIONS:
            yield f"%{name} is no substitution"


def _complaints_about_directives(found: list[Directive], given: set[str]) -> Iterator[str]:
    """About the lines that one call of FileCheck reads; it is `given` some variables."""
    before = None
    captured = set(given)
    for directive in found:
        where = f"line {directive.line}: {directive.prefix}{directive.ending}"
        if directive.ending in ("-NEXT", "-SAME", "-EMPTY"):
            if before is None:
                yield f"{where} with nothing before it"
            elif before.ending in ("-DAG", "-NOT"):
                yield f"{where} after {before.ending[1:]}"
        if not directive.pattern and directive.ending != "-EMPTY":
            yield f"{where} with no pattern"
        if directive.ending == "-LABEL":
            # LLVM's --enable-var-scope forgets here what has no $; the port never forgets.
            captured = {name for name in captured if name.startswith("$")} | given
        if not directive.literal:
            yield from (f"{where}: {what}" for what in _bad_pattern(directive.pattern, captured))
        before = directive


def _bad_pattern(pattern: str, captured: set[str]) -> Iterator[str]:
    for regex in re.findall(r"\{\{(.*?)\}\}", pattern):
        yield from _bad_regex(regex)
    outside = re.sub(r"\{\{.*?\}\}", "", pattern)
    for inside in re.findall(r"\[\[(.*?)(?=\]\]|$)", outside):
        match = re.fullmatch(r"(\$?[A-Za-z_]\w*)(?::(.*))?", inside)
        if match is None:
            yield f"[[{inside}]] is no capture: write {{{{\\[\\[}}}} or {{LITERAL}}"
        elif match[2] is not None:
            captured.add(match[1])
            yield from _bad_regex(match[2])
        elif match[1] not in captured:
            yield f"{match[1]} was not captured since the last LABEL"


def _bad_regex(regex: str) -> Iterator[str]:
    if not regex:
        yield "an empty regular expression"
    if found := re.search(r"\\[dDwWsSbBAZ]|\(\?|[*+?]\?|[*+]\+", regex):
        yield f"{found[0]} is Python's: write it with POSIX classes"


def _misspelt(text: str, used: set[str]) -> Iterator[str]:
    """Lines that look like a directive and are none."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(
            r"\s*(?:[;#]+|//+)?\s*([A-Z][A-Z0-9]*(?:[-_ ]?[A-Z0-9]+)*)\s*(\{\w+\})?:", line
        )
        if match is None or match[1] in ("RUN", "COM", "DEFINE", "REDEFINE", "TODO", "NOTE"):
            continue
        head = match[1]
        right = any(re.fullmatch(rf"{re.escape(p)}(?:{ENDINGS})?", head) for p in used)
        tail = line[match.start(1) + len(head) :]
        if right and (tail.startswith((":", "{LITERAL}:"))):
            continue
        looks = head.startswith(("CHECK", *used)) or re.search(r"[-_](?:NEXT|SAME|NOT|DAG)$", head)
        if looks:
            yield f"line {number}: {head} is a directive of no FileCheck call here"


FILES = [
    path
    for path in sorted(LIT.rglob("*"))
    if path.suffix in SUFFIXES and not {"Inputs", "Output"} & set(path.relative_to(LIT).parts)
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LIT)))
def test_style(path):
    assert list(complaints(path.read_text())) == []


def test_there_are_tests_of_every_tool():
    assert {path.relative_to(LIT).parts[0] for path in FILES} >= {
        "fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run",
    }  # fmt: skip


GOOD = """; RUN: fly-x < %s | %filecheck %s --check-prefixes=CHECK,B -DN=4
; RUN: not fly-x --bad %s 2>&1 \\
; RUN:   | FileCheck %s --check-prefix=ERR
; CHECK-LABEL: name [[X:%[0-9]+]]
; CHECK-NEXT: use [[X]] {{[[:alnum:]_]+}}
; CHECK{LITERAL}: [[1, 2]]
; B-DAG: one
; ERR: error: this
; ERR-NOT: Traceback
; a remark: about it
"""


def test_a_good_test_is_good():
    assert list(complaints(GOOD)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("; CHECK: x", "no RUN line"),
        ("; RUN: fly-x %s", "nothing that can fail"),
        ("; RUN: fly-x %s | %filecheck %s", "prefix CHECK: no line says what there must be"),
        ("; RUN: x | %filecheck %s\n; CHECK-NOT: y", "prefix CHECK: no line says"),
        ("; RUN: x | %filecheck %s --check-prefixes=A,B\n; A: y", "prefix B: no line says"),
        ("; RUN: x | %filecheck %s\n; CHECK: y\n; CHECK_NEXT: y", "CHECK_NEXT is a directive"),
        ("; RUN: x | %filecheck %s\n; CHECK: y\n; CHEKC-NEXT: y", "CHEKC-NEXT is a directive"),
        ("; RUN: x | %filecheck %s\n; CHECK: y\n; CHECK-DAG-NOT: y", "DAG-NOT is a directive"),
        ("; RUN: x | %filecheck %s\n; CHECK: y\n; CHECK-NEXT : y", "CHECK-NEXT is a directive"),
        ("; RUN: x | %filecheck %s\n; CHECK: y\n; ERR-NEXT: y", "ERR-NEXT is a directive"),
        ("; RUN: x | %filecheck %s\n; CHECK-NEXT: y", "CHECK-NEXT with nothing before it"),
        ("; RUN: x | %filecheck %s\n; CHECK-DAG: y\n; CHECK-NEXT: z", "CHECK-NEXT after DAG"),
        ("; RUN: x | %filecheck %s\n; CHECK:", "CHECK with no pattern"),
        ("; RUN: x | %filecheck %s\n; CHECK: {{\\d+}}", "\\d is Python's"),
        ("; RUN: x | %filecheck %s\n; CHECK: {{a(?=b)}}", "(? is Python's"),
        ("; RUN: x | %filecheck %s\n; CHECK: {{.*?}}", "*? is Python's"),
        ("; RUN: x | %filecheck %s\n; CHECK: a{{}}b", "an empty regular expression"),
        ("; RUN: x | %filecheck %s\n; CHECK: [[#N]]", "[[#N]] is no capture"),
        ("; RUN: x | %filecheck %s\n; CHECK: [[@LINE]]", "[[@LINE]] is no capture"),
        ("; RUN: x | %filecheck %s\n; CHECK: [[1, 2]]", "[[1, 2]] is no capture"),
        ("; RUN: x | %filecheck %s\n; CHECK: [[A]]", "A was not captured since the last LABEL"),
        (
            "; RUN: x | %filecheck %s\n; CHECK: [[A:x]]\n; CHECK-LABEL: y\n; CHECK: [[A]]",
            "A was not captured since the last LABEL",
        ),
        ("; RUN: x | %filecheck --enable-var-scope %s\n; CHECK: y", "--enable-var-scope"),
        ("; RUN: x | %filecheck %s --implicit-check-not=z\n; CHECK: y", "--implicit-check-not=z"),
        ("; RUN: x | %filecheck %S/other\n; CHECK: y", "%S/other"),
        ("; RUN: not x || true", "'|| true' in a RUN line"),
        ("; RUN: not python3 %s", "write %PYTHON"),
        ("; RUN: not %python %s", "%python is no substitution"),
        ("; RUN: not --crash x", "'not --crash' in a RUN line"),
        ("; RUN: not x $HOME", "'$H' in a RUN line"),
        ("; RUN: not x\n; REQUIRES: gpu", "REQUIRES: a test runs everywhere"),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    assert any(message in what for what in complaints(text)), list(complaints(text))

"""Converts llc's error messages to this project's errors.

llc reports errors in eleven forms (LLVM 22):

    llc: error: llc: <stdin>:8:13: error: expected type          the parser, with source and caret
    error: <stdin>:97:12: …   error: YAML:40:8: …                 the MIR parser
    PHINode should have …\\n  %p = phi …\\nllc: error: '<stdin>': input module cannot be verified
    error: kernel.py:12:3: in function k void (ptr): unsupported  a target's refusal, with the place
    error: <unknown>:0:0: local memory (400000) exceeds limit     from debug info, or without any
    <inline asm>:1:2: error: invalid instruction                  the assembler
    error: couldn't allocate output register for constraint 'q'   inline assembly, of no line
    *** Bad machine code: …\\n- function: k\\n- instruction: …     the machine verifier, on MIR
    LLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.tanh        an abort, with a stack dump
    llc: Unknown command line argument '-x'.  Try: …              the command line
    llc: for the --x option: '7' is invalid value for boolean …   the value of an option

A process that died without a message is reported by its signal.
"""

from __future__ import annotations

import re
import signal as signals

from fly_common.diagnostics import Warning
from fly_common.errors import FlyError, InputError, MissingError, Place, UsageError
from fly_common.programs import llvm_diagnostics
from fly_common.quoting import quoted

from fly_llc.codegen import inline_assembly

_AT_INPUT = re.compile(r"(?:<stdin>|YAML):(?P<line>\d+):(?P<column>\d+): (?:error: )?(?P<what>.+)")
_AT_ASM = re.compile(r"<inline asm>:(?P<line>\d+):(?P<column>\d+): error: (?P<what>.+)")
_CONSTRAINT = re.compile(r"^error: (?P<what>.* constraint '(?P<constraint>[^']+)'.*)", re.MULTILINE)
_AT_SOURCE = re.compile(r"^error: (?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?P<what>.+)")
_PLAIN = re.compile(r"^(?:llc: )?error: (?:llc: )?(?:<(?:stdin|unknown)>:(?:0:0:)? )?(?P<what>.+)")
_ABORT = re.compile(r"^LLVM ERROR: (?P<what>.+)", re.MULTILINE)
_UNVERIFIED = re.compile(r"^llc: error: .*input module cannot be verified", re.MULTILINE)
_BROKEN = "Broken function found"
_UNKNOWN_CPU = re.compile(r"'(?P<cpu>[^']*)' is not a recognized processor")
_UNKNOWN_FEATURE = re.compile(r"'(?P<feature>[^']*)' is not a recognized feature")
_IN_FUNCTION = re.compile(r"^in function (?P<name>\S+) .*?\): (?P<what>.+)", re.DOTALL)
_RUNNING = re.compile(r"Running pass '(?P<stage>[^']*)' on function '@(?P<name>[^']*)'")
_BAD_MACHINE = re.compile(
    r"^\*\*\* Bad machine code: (?P<what>.+?) \*\*\*\n- function: +(?P<name>\S+)\n"
    r"(?:- basic block: .*\n)?(?:- instruction: (?:\d+B\s+)?(?P<text>.+))?",
    re.MULTILINE,
)
_UNKNOWN_OPTION = re.compile(r"Unknown command line argument '(?P<option>[^']+)'")
_WRONG_VALUE = re.compile(r"^\S+: for the (?P<option>-\S+) option: (?P<what>.+)", re.MULTILINE)
_UNLOADED = re.compile(r"Error opening '(?P<path>[^']+)': (?P<why>.+)")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}(?:: |\b)")

# Advice for an error, by a part of its text. The first match is used.
_ADVICE = (
    (
        "Cannot select",
        "{cpu} has no instruction for it: compute it differently, or use a newer --target",
    ),
    ("local memory", "a workgroup's LDS has a fixed size: make the shared buffers smaller"),
    ("scratch", "the kernel's private arrays are too large"),
)


def is_refusal(stderr: str) -> bool:
    """Returns whether llc reported an error that invalidates its output although it succeeded: it
    replaces an unknown processor by the oldest one."""
    return bool(_UNKNOWN_CPU.search(stderr) or _UNKNOWN_FEATURE.search(stderr))


def explain(stderr: str, text: str, name: str, cpu: str, signal: int | None = None) -> FlyError:
    """Returns llc's error. `text` is the input, for the excerpt; `name` is the input's name."""
    if match := _UNLOADED.search(stderr):
        return MissingError(f"LLVM can't load {match['path']}: {match['why'].strip()}")
    if match := _UNKNOWN_OPTION.search(stderr):
        return UsageError(
            f"llc has no option {match['option']}", hint="llc --help-hidden lists them"
        )
    if match := _WRONG_VALUE.search(stderr):
        return UsageError(f"llc's option {match['option']}: {match['what']}")
    if match := _UNKNOWN_CPU.search(stderr):
        from fly_llc.codegen import points

        architecture = points.code_generation(match["cpu"]).triple.partition("-")[0]
        return InputError(
            f"LLVM does not know the processor {quoted(match['cpu'])}",
            place=Place(name),
            hint=f"llc -march={architecture} -mcpu=help lists the known ones",
        )
    if match := _UNKNOWN_FEATURE.search(stderr):
        return InputError(
            f"LLVM does not know the feature {quoted(match['feature'])} of {cpu}", place=Place(name)
        )
    if _UNVERIFIED.search(stderr) or _BROKEN in stderr:
        return _unverified(stderr, text, name)
    if match := _BAD_MACHINE.search(stderr):
        shown = f": {match['text'].strip()}" if match["text"] else ""
        what = f"bad machine code in {match['name']}: {match['what']}{shown}"
        return InputError(what, place=Place(name))
    if match := _AT_ASM.search(stderr):
        return _in_assembly(match, stderr, text, name)
    if match := _CONSTRAINT.search(stderr):
        place = inline_assembly.place_of_constraint(text, match["constraint"])
        return InputError(f"in inline assembly: {match['what']}", place=place or Place(name))
    if match := _AT_INPUT.search(stderr):
        place = _place(name, text, int(match["line"]), int(match["column"]))
        return InputError(match["what"], place=place)
    if match := _ABORT.search(stderr):
        return _aborted(match["what"], stderr, name, cpu)
    for line in stderr.splitlines():
        if (match := _AT_SOURCE.match(line)) and match["file"] != "<unknown>":
            at = match["file"], int(match["line"]), int(match["column"])
            return _refused(match["what"], llvm_diagnostics.place(*at) or Place(name), cpu)
        if match := _PLAIN.match(line):
            return _refused(match["what"], Place(name), cpu)
    if signal is not None:
        return _crashed(signal, stderr, name)
    return InputError(f"llc rejected it: {last_words(stderr)}", place=Place(name))


def warnings(stderr: str) -> list[Warning]:
    """Returns llc's warnings; other lines that it printed are warnings too."""
    found, rest = llvm_diagnostics.warnings(stderr)
    return [*found, *map(Warning, dict.fromkeys(rest.splitlines()))]


def last_words(stderr: str) -> str:
    """Returns the last line with text, without llc's own name."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    return (
        re.sub(r"^.*?error: (?:<stdin>: )?(?:error: )?", "", lines[-1])
        if lines
        else "no reason given"
    )


def _place(name: str, text: str, line: int, column: int) -> Place:
    lines = text.split("\n", line)
    source = lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else None
    return Place(name, line, column, source)


def _unverified(stderr: str, text: str, name: str) -> InputError:
    """The verifier prints the problem and the instruction, but no location. The input is searched
    for the line, which is reported if the match is unique."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    what = lines[0].rstrip("!.")
    wanted = _squeezed(lines[1]) if len(lines) > 1 else ""
    like = [n for n, line in enumerate(text.split("\n"), 1) if wanted and _squeezed(line) == wanted]
    place = Place(name)
    if len(like) == 1:
        source = text.split("\n")[like[0] - 1]
        place = _place(name, text, like[0], len(source) - len(source.lstrip()) + 1)
    elif wanted:
        what += f": {lines[1].strip()}"
    return InputError(f"the module is not valid LLVM IR: {what}", place=place)


def _squeezed(line: str) -> str:
    return re.sub(r"\s+", "", line.partition(";")[0])


def _in_assembly(match: re.Match[str], stderr: str, source: str, name: str) -> InputError:
    """The assembler counts lines within one piece of assembly, and prints the source line below."""
    rest = stderr[match.end() :].split("\n")
    text = rest[1].strip() if len(rest) > 1 else ""
    place = inline_assembly.place_of_line(source, text) if text else None
    return InputError(
        f"in inline assembly: {match['what']}: {text}" if text else match["what"],
        place=place or Place(name),
    )


def _aborted(what: str, stderr: str, name: str, cpu: str) -> InputError:
    """An abort may name the function in a line of its own or in the stack dump."""
    function = re.search(r"^In function: (\S+)", stderr, re.MULTILINE) or _RUNNING.search(stderr)
    where = f"in {function[function.lastindex or 0]}: " if function else ""
    return _refused(where + _ADDRESS.sub("", what), Place(name), cpu)


def _refused(what: str, place: Place, cpu: str) -> InputError:
    if match := _IN_FUNCTION.match(what):
        what = f"in {match['name']}: {match['what']}"
    advice = next((hint for sign, hint in _ADVICE if sign in what), "")
    return InputError(what.strip(), place=place, hint=advice.format(cpu=cpu) or None)


def _crashed(signal: int, stderr: str, name: str) -> InputError:
    try:
        cause = signals.Signals(signal).name
    except ValueError:
        cause = f"signal {signal}"
    running = _RUNNING.search(stderr)
    during = f" in {quoted(running['stage'])} on {running['name']}" if running else ""
    return InputError(
        f"llc crashed ({cause}){during}",
        place=Place(name),
        hint="this is a bug in LLVM; another -O level may avoid it",
    )

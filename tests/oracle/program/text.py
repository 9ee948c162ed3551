"""Parses instruction text, as llvm-objdump prints it.

    mnemonic operand, operand, … modifier modifier:value …

An operand is a register, a span of registers, a constant, or one of those inside `-…`, `|…|`,
`neg(…)`, `abs(…)`, `sext(…)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NULL = 128  # gfx11 and later: reads 0, discards writes; a number that no register has

SPECIAL = {
    "flat_scratch_lo": 102,
    "flat_scratch_hi": 103,
    "xnack_mask_lo": 104,
    "xnack_mask_hi": 105,
    "vcc_lo": 106,
    "vcc_hi": 107,
    "m0": 124,
    "exec_lo": 126,
    "exec_hi": 127,
    "null": NULL,
}
PAIRS = {"flat_scratch": 102, "xnack_mask": 104, "vcc": 106, "exec": 126}
ENCODINGS = ("_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp")


@dataclass(frozen=True)
class Operand:
    """`kind`: "v", "a", "s" (register `index`, `count` of them), "int", "float", "name"."""

    kind: str
    index: int = 0
    count: int = 1
    value: float = 0
    name: str = ""
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False
    half: int | None = None  # gfx11's v1.l and v1.h: the half of the register
    literal: bool = False  # printed in hexadecimal: a separate dword after the instruction


@dataclass(frozen=True)
class Instruction:
    mnemonic: str  # without its encoding suffix
    encoding: str  # "e32", "e64", "sdwa", "dpp", "e64_dpp" or ""
    operands: tuple[Operand, ...]
    modifiers: dict[str, object] = field(hash=False)
    text: str
    words: tuple[int, ...]

    @property
    def size(self) -> int:
        return 4 * len(self.words)


_MODIFIER = re.compile(
    r"(?P<name>[a-z_0-9]+):(?P<value>\[[^\]]*\]|swizzle\([^)]*\)|hwreg\([^)]*\)|[-\w.]+)$"
)
_FLAGS = {
    *("glc", "slc", "dlc", "nt", "sc0", "sc1", "lds", "gds", "tfe", "clamp", "offen", "idxen"),
    *("addr64", "bound_ctrl", "row_mirror", "row_half_mirror"),
    "scale_offset",
}


def parse(text: str, words: tuple[int, ...]) -> Instruction:
    mnemonic, _, rest = text.partition(" ")
    encoding = ""
    for suffix in ENCODINGS:
        if mnemonic.endswith(suffix):
            mnemonic, encoding = mnemonic[: -len(suffix)], suffix[1:]
            break
    pieces = _split(rest.strip())
    operands, modifiers = [], {}
    for piece in pieces:
        words_ = _tokens(piece)
        head = words_.pop(0)
        if _is_modifier(head):
            words_.insert(0, head)
        else:
            operands.append(operand(head))
        for word in words_:
            _modifier(word, modifiers, text)
    return Instruction(mnemonic, encoding, tuple(operands), modifiers, text, words)


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    pieces, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == "," and depth == 0:
            pieces.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*pieces, last] if last else pieces


def _tokens(text: str) -> list[str]:
    """Splits at spaces outside brackets."""
    return re.findall(r"(?:\[[^\]]*\]|\([^)]*\)|\S)+", text)


def _is_modifier(word: str) -> bool:
    return word in _FLAGS or bool(_MODIFIER.match(word))


def _modifier(word: str, modifiers: dict, text: str) -> None:
    if word in _FLAGS:
        modifiers[word] = 1
        return
    match = _MODIFIER.match(word)
    if not match:
        # s_waitcnt's counters and similar words, which the oracle ignores.
        modifiers.setdefault("words", []).append(word)
        return
    value = match["value"]
    if value.startswith("["):
        modifiers[match["name"]] = [int(part, 0) for part in value[1:-1].split(",")]
    elif re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", value):
        modifiers[match["name"]] = int(value, 0)
    else:
        modifiers[match["name"]] = value


_REGISTER = re.compile(
    r"(?P<kind>ttmp|[vsa])(?:(?P<one>\d+)(?P<half>\.[lh])?|\[(?P<first>\d+):(?P<last>\d+)\])$"
)


def operand(text: str) -> Operand:
    negate = absolute = sign_extend = False
    while True:
        if match := re.fullmatch(r"(neg|abs|sext)\((.*)\)", text):
            negate ^= match[1] == "neg"
            absolute |= match[1] == "abs"
            sign_extend |= match[1] == "sext"
            text = match[2]
        elif text.startswith("-") and re.match(r"-[vsa|\[]", text) and not text[1:2].isdigit():
            negate, text = True, text[1:]
        elif text.startswith("|"):
            absolute, text = True, text.strip("|")
        else:
            break
    flags = {"negate": negate, "absolute": absolute, "sign_extend": sign_extend}
    if match := re.fullmatch(r"lit(?:64)?\((.*)\)", text):
        text = match[1]
    if match := _REGISTER.match(text):
        first = int(match["one"] or match["first"])
        last = int(match["one"] or match["last"])
        kind = match["kind"]
        if kind == "ttmp":
            kind, first, last = "s", first + 108, last + 108
        half = {".l": 0, ".h": 1}.get(match["half"])
        return Operand(kind, first, last - first + 1, half=half, **flags)
    if text in SPECIAL:
        return Operand("s", SPECIAL[text], 1, **flags)
    if text in PAIRS:
        return Operand("s", PAIRS[text], 2, **flags)
    if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text):
        return Operand("int", value=int(text, 0), literal="0x" in text, **flags)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return Operand("float", value=float(text), **flags)
    return Operand("name", name=text, **flags)

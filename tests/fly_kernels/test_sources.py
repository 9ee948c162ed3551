"""The sources of products and attention are short, and have no assembly in them."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "fly" / "kernels"
MOST_LINES = 150  # of a module, without blank lines, comments and docstrings
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
MODULES = [
    path for folder in ("gemm", "attention") for path in sorted((KERNELS / folder).rglob("*.py"))
]


def code_lines(text: str) -> int:
    """The lines that have code on them."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return len(lines)


def assembly(text: str) -> set[str]:
    """The names with "asm" in them."""
    found = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    return {name for name in found if "asm" in name}


def test_lines_are_counted():
    text = '"""Of\n\na module."""\n\n# why\nx = (\n    1,  # one\n\n    2,\n)\n\n\n'
    text += 'def f():\n    """No."""\n'
    text += '    return """a\nb"""\n'
    assert code_lines(text) == 4 + 3
    assert assembly("fx.inline_asm('', 'r', x)\nasm = 1") == {"inline_asm", "asm"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(KERNELS).as_posix())
def test_a_source_is_short_and_has_no_assembly(path):
    text = path.read_text(encoding="utf-8")
    assert code_lines(text) <= MOST_LINES
    assert not assembly(text)


def test_all_are_looked_at():
    assert len(MODULES) > 50

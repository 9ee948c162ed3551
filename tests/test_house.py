"""How the packages are laid out: small folders, and each vendor's words in its own folders."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import long_tests
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ROOT / "fly",
    *sorted((ROOT / "common").glob("fly_*")),
    *sorted((ROOT / "tools").glob("*/fly_*")),
]
MOST_MODULES = 20  # of a folder
# Packages that hold no vendor's word outside the vendor's folders.
NEUTRAL = ("fly_trace", "fly_dialect", "fly_opt", "fly_llc")
VENDORS = ("amd", "nvidia")  # folders

# Vendors' names, those of their chips, instructions and libraries. LDS is AMD's shared memory.
WORD = re.compile(
    r"(?<![a-z])(amd|hip|hsa|lds|nvidia|cuda|nvvm|nvptx|ptx|cubin)(?![a-z])"
    r"|amdgcn|amdgpu|amdhsa|rocm|rocdl|gfx\d|mfma|wmma|hsaco|vgpr|sgpr|agpr|cdna|rdna|waitcnt"
    r"|wavefront|xnack|sramecc|ocml|oclc|\bsm_\d",
    re.IGNORECASE,
)
# What stands outside, and why.
ALLOWED = {
    # MLIR's own pass, in the list of those that one may want.
    ("fly_opt/pipeline/registry.py", "convert-gpu-to-nvvm"),
    ("fly_opt/pipeline/registry.py", "lowers a gpu.module to nvvm"),
    # Examples in help texts name a chip that exists.
    ("fly_opt/cli.py", "--fly-set-target=chip=gfx942"),
    ("fly_opt/cli.py", "target=gfx950"),
    # Where the modules are that know a machine: references.
    ("fly_llc/mir/__init__.py", "amd"),
    ("fly_llc/insertion/filters.py", "fly_llc.shipped.amd."),
    # Advice on what LLVM says.
    ("fly_llc/codegen/refusal.py", "a workgroup's LDS has a fixed size"),
    # Going on from MIR mends what it leaves out of kernel descriptors; other code has none.
    ("fly_llc/codegen/resume.py", "workGroupID"),
    ("fly_llc/codegen/resume.py", ".amdhsa_"),
}


def modules(package: Path) -> Iterator[Path]:
    return (path for path in sorted(package.rglob("*.py")))


def code_words(text: str) -> Iterator[str]:
    """Names and strings of a module, but neither comments nor docstrings."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            prose |= set(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.STRING) and token.start[0] not in prose:
            yield token.string


def vendors_words(path: Path, name: str) -> list[str]:
    allowed = [words for file, words in ALLOWED if file == name]
    found = []
    for word in code_words(path.read_text(encoding="utf-8")):
        if WORD.search(word) and not any(text in word for text in allowed):
            found.append(f"{name}: {word}")
    return found


@pytest.mark.parametrize(
    "package", [p for p in PACKAGES if p.name in NEUTRAL], ids=lambda p: p.name
)
def test_no_vendors_word_outside_the_vendors_folders(package):
    found = []
    for path in modules(package):
        inside = path.relative_to(package.parent)
        if not set(VENDORS) & set(inside.parts):
            found += vendors_words(path, inside.as_posix())
    assert not found, "\n".join(found)


def test_a_vendors_word_is_seen():
    """The test above can fail: in names and in strings, and comments are not its business."""
    words = list(code_words('"""gfx942"""\nmfma = "v_wmma_f32"  # rdna\n'))
    assert [word for word in words if WORD.search(word)] == ["mfma", '"v_wmma_f32"']
    assert not WORD.search("fields")
    assert not WORD.search("chip")
    assert WORD.search("has_lds")


def test_what_is_allowed_is_needed():
    for file, words in ALLOWED:
        path = next(ROOT.glob(f"*/{file}"), None) or next(ROOT.glob(f"*/*/{file}"))
        assert words in path.read_text(encoding="utf-8"), (file, words)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.name)
def test_folders_stay_small(package):
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        found = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(found) <= MOST_MODULES, f"{folder.relative_to(ROOT)} has {len(found)} modules"


def test_long_tests_exist():
    assert long_tests.missing() == []

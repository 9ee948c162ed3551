"""Rows: what comes with the compiler, what packages add, and what stages ask of one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from chosen_targets import AMD
from fly_common.errors import MissingError, UsageError
from fly_common.programs import toolchain
from fly_common.record import replace
from fly_target import registry
from fly_target.amd import generations
from fly_target.amd.chips import chip
from fly_target.amd.facts import facts_of
from fly_target.amd.processors import PROCESSORS, version
from fly_target.amd.waits import BY_MAJOR
from fly_target.registry import BUILT_IN

import fly


def llvm(program: str, *arguments: str, text: str = "") -> str:
    command = [toolchain.find_program(program), *arguments]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


# -- what the rows say, against LLVM ---------------------------------------------------------------

KERNEL = """
target triple = "amdgcn-amd-amdhsa"
@lds = internal addrspace(3) global [LDS x i8] poison
define amdgpu_kernel void @k(ptr addrspace(1) %p) {
  call void asm sideeffect "", "~{v40}"()
  %at = getelementptr i8, ptr addrspace(3) @lds, i32 8
  store volatile i32 1, ptr addrspace(3) %at
  ret void
}
"""


def assembled(target: str, lds: int = 64, *arguments: str) -> str:
    text = KERNEL.replace("LDS", str(lds))
    return llvm("llc", f"-mcpu={BUILT_IN[target].cpu}", *(arguments or ("-o", "-")), text=text)


@pytest.mark.parametrize("name", AMD)
def test_llvm_says_the_same_of_the_chip(name: str, tmp_path: Path):
    """The number in the ELF file, the wave's size, and the granule of registers."""
    target, facts = BUILT_IN[name], facts_of(BUILT_IN[name])
    found = tmp_path / "k.o"
    assembled(name, 64, "-filetype=obj", "-o", str(found))
    assert int.from_bytes(found.read_bytes()[48:52], "little") & 0xFF == facts.elf_machine
    text = assembled(name)
    assert f".wavefront_size: {target.wave_size}" in text
    used, blocks = (
        int(re.search(rf"; {word}: (\d+)", text)[1])  # type: ignore[index]
        for word in ("NumVgprs", "VGPRBlocks")
    )
    granule = facts.registers.encoded_granule
    assert used == 41
    assert blocks == -(-used // granule) - 1


@pytest.mark.parametrize("name", AMD)
def test_llvm_allows_as_much_lds(name: str):
    most = BUILT_IN[name].lds
    assembled(name, most)
    with pytest.raises(AssertionError, match=rf"local memory \({most + 4}\) exceeds limit"):
        assembled(name, most + 4)


@pytest.mark.parametrize("name", AMD)
def test_waits_are_as_llvm_assembles_them(name: str):
    waits = facts_of(BUILT_IN[name]).waits
    text = "s_wait_loadcnt 0x7" if waits.split else "s_waitcnt vmcnt(7) lgkmcnt(5) expcnt(3)"
    cpu = f"-mcpu={BUILT_IN[name].cpu}"
    shown = llvm("llvm-mc", "-triple=amdgcn-amd-amdhsa", cpu, "-show-encoding", text=text)
    code = [int(byte, 16) for byte in re.findall(r"0x(\w\w)[,\]]", shown)]
    word = code[0] | code[1] << 8
    if waits.split:
        assert waits.vm.read(word) == 7
    else:
        assert waits.word(7, 5, 3) == word
        assert (waits.vm.read(word), waits.lgkm.read(word), waits.exp.read(word)) == (7, 5, 3)


def test_versions_of_processors():
    assert version("gfx942") == (9, 4, 2)
    assert version("gfx90a") == (9, 0, 10)
    assert version("gfx1201") == (12, 0, 1)
    assert version("gfx9-generic") is None
    assert version("sm_90a") is None
    assert version("gfx9zz") is None
    assert all(version(name) for name in PROCESSORS.values() if "generic" not in name)


def test_waits_by_major_version_are_those_of_the_rows():
    for target in AMD.values():
        facts = facts_of(target)
        assert BY_MAJOR[facts.generation] == facts.waits


def test_rows_are_data():
    """Equal where their fields are, hashable, and unchangeable."""
    target = BUILT_IN["gfx942"]
    assert replace(target) == target
    assert hash(replace(target)) == hash(target)
    with pytest.raises(AttributeError):
        target.lds = 0  # type: ignore[misc]


# -- finding a row ---------------------------------------------------------------------------------


def test_an_unknown_name_is_answered_with_near_ones_or_all():
    with pytest.raises(UsageError, match="unknown target 'gfx94'") as near:
        registry.find("gfx94")
    assert "did you mean" in (near.value.hint or "")
    assert "gfx942" in (near.value.hint or "")
    with pytest.raises(UsageError, match="unknown target 'volta'") as far:
        registry.find("volta")
    assert far.value.hint == f"the targets are {', '.join(BUILT_IN)}"
    assert registry.get("sm_90") is None


def test_a_list_for_help():
    assert registry.listed().startswith("gfx908, gfx90a, gfx942, ")


def test_a_known_name_looks_at_no_package():
    """Entry points are looked for where a name is unknown, and nothing heavy is imported."""
    script = (
        "import sys; from fly_target import registry; registry.find('gfx942');"
        "print({'importlib.metadata', 'dataclasses', 'difflib', 'typing'} & {*sys.modules} or '')"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""


# -- rows of other packages ------------------------------------------------------------------------

# A chip of a known generation that does not come with the compiler.
MODULE = """
from fly_target.amd import generations
from fly_target.amd.chips import chip
print("imported", end="")
ROW = chip("gfx1103", generations.RDNA3, "Radeon 780M")
OTHER = chip("gfx1150", generations.RDNA3, "")
NUMBER = 7
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs a package with an entry point `name = value`."""

    def install(name: str, value: str) -> None:
        (tmp_path / "guest_chips.py").write_text(MODULE)
        info = tmp_path / "guest_chips-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest-chips\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = {value}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(registry, "_loaded", {})

    yield install
    sys.modules.pop("guest_chips", None)


def test_a_packages_chip_is_compiled_for_and_run(package, capsys, monkeypatch):
    package("gfx1103", "guest_chips:ROW")
    assert "gfx1103" in registry.names()
    assert registry.get("gfx1109") is None
    assert capsys.readouterr().out == "", "imported for a name that is not its own"
    row = registry.find("gfx1103")
    assert (row.name, facts_of(row).elf_machine) == ("gfx1103", 0x44)
    monkeypatch.setenv("FLY_TARGET", "gfx1103")
    numbers = np.arange(64, dtype=np.int32)
    doubled(numbers)
    assert (numbers == 2 * np.arange(64)).all()


@fly.kernel
def doubled_kernel(A):
    A[fly.expr.thread_idx.x] = A[fly.expr.thread_idx.x] * 2


@fly.jit
def doubled(A: fly.expr.Tensor[fly.expr.Int32, "n"]):  # noqa: F821, UP037
    doubled_kernel(A).launch(grid=1, block=64)


def test_a_changed_row_of_a_package_is_another_fingerprint(package, monkeypatch):
    from fly_opt import Options
    from fly_opt.identity import fingerprint

    package("gfx1103", "guest_chips:ROW")
    chosen = (
        Options(target="gfx1103"),
        Options(passes="builtin.module(fly-set-target{chip=gfx1103})"),
    )
    before = [fingerprint(options) for options in chosen]
    changed = replace(registry.find("gfx1103"), max_workgroup=512)
    monkeypatch.setattr(registry, "_loaded", {"gfx1103": changed})
    after = [fingerprint(options) for options in chosen]
    assert all(one != other for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("guest_chips:ABSENT", "can't be loaded: AttributeError: .*ABSENT"),
        ("no_such_module:ROW", "can't be loaded: ModuleNotFoundError: .*no_such_module"),
        ("guest_chips:NUMBER", "is int, not the target gfx1103"),
        ("guest_chips:OTHER", "is the target gfx1150, not the target gfx1103"),
    ],
)
def test_a_package_that_is_broken_is_named(package, value: str, message: str):
    package("gfx1103", value)
    with pytest.raises(MissingError, match=f"target gfx1103: .*{value}.* {message}") as refused:
        registry.find("gfx1103")
    assert refused.value.hint


def test_a_package_replaces_no_row(package):
    package("gfx942", "guest_chips:ROW")
    assert registry.find("gfx942") is BUILT_IN["gfx942"]


def test_a_chip_of_a_known_generation_is_one_call():
    made = chip("gfx1103", generations.RDNA3, "Radeon 780M")
    assert made.traits == BUILT_IN["gfx1100"].traits
    assert facts_of(made).isa_version == 11003

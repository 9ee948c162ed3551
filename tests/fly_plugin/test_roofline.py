"""The plugin roofline: its counts are those of the emulator, or it says that they are unknown.

The emulator counts what is executed; the plugin evaluates a program that the compiler left in the
code object. They share no code.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fly_image
import numpy as np
import pytest
from fly_common.errors import InputError
from fly_common.programs import toolchain
from fly_image.elf import Elf
from fly_link import link
from fly_llc import Options, compile
from fly_plugin import activated, activation
from fly_run.devices import options as devices
from fly_run.emulator.isa import matrix
from fly_run.emulator.machine import Emulator
from fly_run.emulator.watch.stats import Statistics
from fly_trace.session.load import find_entry, load_file
from kernels import build
from kernels.cases import CASES as OPENCL
from kernels.launching import run as run_opencl
from plugins import EXAMPLES, SHIPPED, Site

import fly

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from example_cases import WIDELY, Case, check

TARGETS = ("gfx942", "gfx1100")
EVERY = (*TARGETS, "gfx90a", "gfx950", "gfx1201")
PAIRS = [(case, target) for case in WIDELY for target in EVERY if target in case.targets]
# Kernels whose branches depend on data.
BY_DATA = ("top_k_kernel", "prefix_sum_kernel")
every_example = pytest.mark.parametrize(
    ("case", "target"), PAIRS, ids=[f"{case.name}-{target}" for case, target in PAIRS]
)


@pytest.fixture
def roofline(example) -> Site:
    return example("roofline")


@pytest.fixture
def launches(monkeypatch) -> Iterator[list[tuple[Any, ...]]]:
    """What the emulator is asked to launch."""
    seen: list[tuple[Any, ...]] = []
    plain = Emulator.launch

    def launch(self, function, grid, block, packed, shared=0, stream=None):
        seen.append((function.kernel.name, grid, block, bytes(packed)))
        return plain(self, function, grid, block, packed, shared, stream)

    monkeypatch.setattr(Emulator, "launch", launch)
    return seen


def compiled(case: Case, target: str, *plugins: str) -> fly.call.compiled.Compiled:
    path = str(EXAMPLES / case.file)
    function = find_entry(load_file(path), path, case.entry).function
    return fly.jit(chain=fly.chain(target, plugins=plugins))(function).compile()


def plain_counts(document: dict[str, Any]) -> dict[str, int]:
    """The emulator's figures by the plugin's names."""
    memory = document["memory"]
    assert memory["not_modelled"] == 0
    return {
        **document["flops"],
        **{one: memory["global"].get(one, {}).get("bytes", 0) for one in ("load", "store")},
        "atomic": memory["global"].get("atomic", {}).get("bytes", 0),
        "scalar": memory["scalar"].get("load", {}).get("bytes", 0),
    }


@every_example
def test_counts_of_the_examples_are_the_emulators(case, target, roofline, launches):
    """FLOPs and bytes of each launch of each example; the results are still right."""
    from fly_roofline.evaluation import evaluate
    from fly_roofline.section import kernels_of

    made = compiled(case, target, "roofline")
    arguments, seen = case.make(), Statistics()
    expected = case.expect(arguments)
    options = devices.Options(observers=(seen,))
    returned = made.run(arguments, device="emulator", options=options).results
    check(case, case.after(arguments, returned), expected)
    kernels = kernels_of(fly_image.read(made.data))
    assert len(launches) == len(seen.documents) > 0
    for (name, *launch), document in zip(launches, seen.documents, strict=True):
        if name in BY_DATA:
            assert "a branch depends on" in kernels[name]["unknown"]
            continue
        assert kernels[name]["unknown"] == ""
        assert vars(evaluate(kernels[name], *launch)) == plain_counts(document)


@every_example
def test_the_code_is_the_same(case, target, roofline):
    """The plugin adds a section, and nothing else."""
    with_, without = (
        Elf.parse(compiled(case, target, *plugins).data) for plugins in (("roofline",), ())
    )
    for name in (".text", ".rodata", ".note"):
        assert with_.section(name) == without.section(name)
    names = [one.name for one in with_.sections]
    assert [one for one in names if one != ".fly.roofline"] == [
        one.name for one in without.sections
    ]
    assert ".fly.roofline" in names


@functools.cache
def opencl(target: str, source: str) -> bytes:
    """The LLVM IR of a file of the OpenCL suite."""
    clang = str(toolchain.find_program("clang"))
    options = (*build.LANGUAGE, *build.DEVICE, f"-mcpu={target}", "-O3", "-emit-llvm", "-S")
    unit = build._unit([source]).encode()
    done = subprocess.run([clang, *options, "-o", "-", "-"], input=unit, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


# Kernels that clang compiles from OpenCL, with all kinds of control flow. `control` calls functions
# through pointers: LLVM can't resume from its MIR.
SOURCES = sorted({case.source for case in OPENCL} - {"control"})


@pytest.mark.heavy
@pytest.mark.parametrize("target", TARGETS)
def test_counts_of_other_kernels_are_the_emulators_or_unknown(target, roofline, launches):
    from fly_roofline.evaluation import Totals, evaluate
    from fly_roofline.instructions import Unknown
    from fly_roofline.section import kernels_of
    from fly_roofline.summary import counts_of

    chosen = activation.activate([activation.Request("roofline", "test")])
    found: Counter[str] = Counter()
    for source in SOURCES:
        cases = [case for case in OPENCL if case.source == source and target in case.targets]
        if not cases:
            continue
        with activated(chosen):
            made = compile(opencl(target, source), Options())
        image = fly_image.read(link([made]))
        kernels = kernels_of(image)
        for case in cases:
            seen = Statistics()
            launches.clear()
            device = Emulator(target, devices.Options(observers=(seen,)))
            run_opencl(device, image, case.kernel, case.launch())
            for (name, *launch), document in zip(launches, seen.documents, strict=True):
                try:
                    totals: Totals = evaluate(kernels[name], *launch)
                except Unknown:
                    found["unknown"] += 1
                    continue
                found["equal"] += 1
                assert totals == counts_of(document), name
    assert found["equal"] >= 40, found
    assert found["equal"] > found["unknown"], found


KERNELS = """
import fly
import fly.expr as fx


@fly.kernel
def data_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if A[i] > 0.0:
        B[i] = A[i] + 1.0


@fly.jit
def by_data(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    data_kernel(A, B).launch(grid=A.shape[0] // 64, block=64)


@fly.kernel
def triangle_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    total = fx.Float32(0)
    if i % 3 != 1:
        for j in range(i):
            total = total + A[i - j]
            if j % 5 == 2:
                total = total * 2.0
    if i < n:
        B[i] = total


@fly.jit
def triangle(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    n = A.shape[0]
    triangle_kernel(A, B, n).launch(grid=(n + 63) // 64, block=64)
"""


@pytest.fixture
def own(roofline, tmp_path) -> Any:
    path = tmp_path / "own_kernels.py"
    path.write_text(KERNELS)
    return load_file(str(path))


def totals_of(function: Any, target: str, launches: list[Any], n: int) -> Any:
    """The plugin's counts of a call with n elements."""
    from fly_roofline.evaluation import evaluate
    from fly_roofline.section import kernels_of

    a, b = np.ones(n, np.float32), np.zeros(n, np.float32)
    made = fly.jit(chain=fly.chain(target, plugins=["roofline"]))(function.function).compile()
    made.run({"A": a, "B": b}, device="emulator")
    name, *launch = launches[-1]
    return evaluate(kernels_of(fly_image.read(made.data))[name], *launch)


def test_branches_on_data_are_unknown(own, launches):
    from fly_roofline.instructions import Unknown

    with pytest.raises(Unknown, match="a branch depends on"):
        totals_of(own.by_data, "gfx942", launches, 64)


@pytest.mark.parametrize("target", TARGETS)
def test_loops_of_different_lengths(own, launches, target):
    """Counted by hand: trip counts by the work item, with a branch in the loop."""
    n = 256
    trips = [i if i % 3 != 1 else 0 for i in range(n)]
    adds = sum(trips)
    doubled = sum(len(range(2, count, 5)) for count in trips)
    found = totals_of(own.triangle, target, launches, n)
    assert (found.store, found.load) == (4 * n, 4 * adds)
    # LLVM may compute the short side of the branch in each turn, and select.
    assert found.vector in (adds + doubled, 2 * adds)


def test_costs_of_matrix_instructions(roofline):
    """By LLVM's opcodes; the emulator has the shapes by mnemonic."""
    from fly_roofline.instructions import cost

    seen = 0
    for mnemonic, shape, _ in matrix.instructions():
        if mnemonic.count("_") and any(f"_{n}b_" in mnemonic for n in (2, 4, 16)):
            continue  # another name of an opcode
        flops = 0 if shape.result == "i32" else 2 * shape.m * shape.n * shape.k * shape.blocks
        if "_32x16x" in mnemonic:  # two of 16x16
            flops *= 2
        assert cost(f"{mnemonic.upper()}_e64").matrix == flops, mnemonic
        seen += 1
    assert seen > 60


@pytest.mark.parametrize(
    ("opcode", "field", "amount"),
    [
        ("V_ADD_F32_e32", "flops", 1),
        ("V_FMAC_F32_e64_dpp", "flops", 2),
        ("V_PK_FMA_F32", "flops", 4),
        ("V_DUAL_FMAC_F32_e32_X_SUB_F32_e32_gfx11", "flops", 3),
        ("V_DUAL_MOV_B32_e32_X_ADD_U32_e32_gfx11", "flops", 0),
        ("V_CMP_LT_F32_e64", "flops", 0),
        ("V_S_EXP_F32_e64", "wave_flops", 1),
        ("S_FMAC_F32", "wave_flops", 2),
        ("GLOBAL_LOAD_DWORDX4_SADDR", "load", 16),
        ("GLOBAL_LOAD_UBYTE", "load", 1),
        ("GLOBAL_LOAD_SHORT_D16_HI", "load", 2),
        ("BUFFER_LOAD_DWORDX3_OFFEN", "load", 12),
        ("BUFFER_STORE_SHORT_OFFEN_exact", "store", 2),
        ("GLOBAL_ATOMIC_ADD_SADDR", "atomic", 4),
        ("GLOBAL_ATOMIC_ADD_X2_RTN", "atomic", 8),
        ("S_LOAD_DWORDX16_IMM", "scalar", 64),
        ("S_LOAD_U8_IMM", "scalar", 1),
        ("DS_READ_B32_gfx9", "load", 0),
        ("SCRATCH_LOAD_DWORD_SADDR", "load", 0),
    ],
)
def test_costs_of_opcodes(roofline, opcode, field, amount):
    from fly_roofline.instructions import Cost, cost

    assert cost(opcode) == Cost(**{field: amount})


def test_addresses_that_may_be_anywhere(roofline):
    from fly_roofline.instructions import Unknown, cost

    for opcode in ("FLAT_LOAD_DWORD", "SI_CALL_ISEL", "INLINEASM", "BUFFER_LOAD_FORMAT_X_OFFEN"):
        with pytest.raises(Unknown):
            cost(opcode)


def test_a_damaged_section(roofline):
    from fly_roofline import section

    made = section.assembly([{"kernel": "k", "unknown": "x"}])
    (text,) = (one for one in made.split("\\22") if one.endswith(";"))
    assert section.read(text.encode())["k"]["unknown"] == "x"
    for data in (b"xx;", text[4:].encode(), b"\xff;", b"eJwDAAAAAAE=;"):
        with pytest.raises(InputError, match="is damaged"):
            section.read(data)


def test_another_vendor(roofline):
    """Code for NVIDIA's GPUs is left as it is, and not counted."""
    from fly_roofline.options import Options as Given
    from fly_roofline.summary import summary
    from fly_run.shell.summaries import Run

    function = load_file(str(EXAMPLES / "vector_add.py")).vector_add.function
    plain, made = (
        fly.jit(chain=fly.chain("sm_90a", plugins=plugins))(function).compile().ir("ptx")
        for plugins in ([], ["roofline"])
    )
    code, same = (re.sub(r"^[ \t]*//\.fly.*\n", "", one, flags=re.M) for one in (made, plain))
    assert code == same
    image = fly_image.read(fly.jit(function).compile(target="sm_90a").data)
    assert summary(Run(image, "cpu", ()), Given()) == "roofline: code for sm_90a is not counted\n"


def test_the_summary_of_fly_run(roofline, tmp_path):
    """The bound, with peaks that are given, and a plot."""
    variables = {"PYTHONPATH": f"{roofline.folder}:{SHIPPED / 'roofline'}"}
    site = roofline
    module = site.ok("fly-trace", EXAMPLES / "vector_add.py", **variables)
    ll = site.ok("fly-opt-py", "--target", "gfx942", input=module, **variables)
    obj = site.ok("fly-llc", "--plugin=roofline", input=ll, **variables)
    image = site.ok("fly-link", input=obj, **variables)
    words = ("fly-run", "-", "--plugin=roofline", "-q", "A=zeros(5003,f32)", "B=zeros(5003,f32)")
    plot = tmp_path / "plot.svg"
    peaks = ("--roofline-peak-flops=1e9", "--roofline-peak-bandwidth=1e12")
    done = site.run(*words, "--stats", *peaks, f"--roofline-plot={plot}", input=image, **variables)
    said = done.stderr.decode()
    assert done.returncode == 0, said
    assert said.endswith(
        "roofline: vector_add_kernel: grid 20, block 256: 5,003 FLOPs, 62,572 bytes (40,024 loaded,"
        " 20,012 stored, 2,536 by scalar loads), 0.08 FLOPs per byte\n"
        "  bound on gfx942 (given peaks): 5 µs, by arithmetic\n"
        "  the emulator counted the same\n"
    )
    root = ElementTree.fromstring(plot.read_text())
    shown = [one.text for one in root.iter() if one.text and one.text.strip()]
    assert "Roofline of gfx942 (given peaks)" in shown
    assert "vector_add_kernel" in shown
    # Without the plugin at compilation, and without it in fly-run.
    bare = site.ok("fly-link", input=site.ok("fly-llc", input=ll), **variables)
    said = site.run(*words, input=bare, **variables).stderr.decode()
    assert said == "roofline: the code object was compiled without the plugin roofline\n"
    words = tuple(word for word in words if not word.startswith("--plugin"))
    assert site.run(*words, input=image, **variables).stderr == b""


@pytest.mark.parametrize("target", ["gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_peaks_are_known(roofline, target):
    from fly_roofline import peaks
    from fly_roofline.evaluation import Totals
    from fly_roofline.options import Options as Given
    from fly_roofline.summary import bound

    found = peaks.of(target, Given())
    assert found.matrix > found.vector > 1e13
    assert 1e11 < found.bandwidth < 1e13
    totals = Totals(vector=1000, matrix=0, load=8)
    made = bound(totals, found)
    assert made.seconds == max(1000 / found.vector, 8 / found.bandwidth)
    assert bound(Totals(matrix=8), peaks.Peaks("", 1.0, 0.0, 1.0)).seconds is None
    with pytest.raises(ValueError, match="positive"):
        Given(peak_flops=-1)


def test_bench_measures_against_the_bound(roofline):
    from fly_roofline.options import Options as Given
    from fly_roofline.summary import summary
    from fly_run.shell.summaries import Launched, Run

    function = load_file(str(EXAMPLES / "vector_add.py")).vector_add.function
    made = fly.jit(chain=fly.chain("gfx942", plugins=["roofline"]))(function).compile()
    image = fly_image.read(made.data)
    size = image.kernel(None).argument_bytes
    packed = b"".join(n.to_bytes(8, "little") for n in range(1000, 1000 + -(-size // 8)))
    launch = Launched("vector_add_kernel", (4, 1, 1), (256, 1, 1), packed, seconds=1e-3)
    said = summary(Run(image, "hip", (launch,)), Given())
    assert "  measured: 1 ms; the bound is " in said

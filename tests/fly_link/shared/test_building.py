"""What libraries are made of: inputs that agree, the same bytes, errors."""

# ruff: noqa: F821  (extents are named by strings)

import hashlib
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError
from fly_cpu import state
from fly_host.native.c_interface import function
from fly_image import library
from fly_image.limits import limits_of
from fly_link.shared import building
from library_support import Library
from library_support.functions import row_sums, saxpy

import fly
import fly.expr as fx

RUNTIME = Path(building.__file__).with_name("runtime")


def refusal(inputs, names=None, **more) -> str:
    names = names or [f"{number}.bin" for number, _ in enumerate(inputs)]
    with pytest.raises(InputError) as caught:
        building.make(inputs, names, **more)
    return caught.value.render("fly-link").splitlines()[0].removeprefix("fly-link: error: ")


def test_the_same_inputs_make_the_same_bytes(images):
    given = [images["gfx942", "saxpy"], images["sm_90a", "saxpy"]]
    first, second = (building.make(given, ["a", "b"], for_cpu=True) for _ in range(2))
    assert first == second
    assert building.make(given, ["c", "d"], for_cpu=True) == first


def test_a_library_holds_its_inputs(images):
    given = [images["gfx942", "saxpy"], images["sm_90a", "saxpy"]]
    made = building.make(given, ["a", "b"])
    assert [image.data for image in library.images(made.data)] == given
    assert 'for: "gfx942, sm_90a"' in made.header


def test_ptx_is_compiled_or_carried(images, monkeypatch):
    """What fly-llc makes is linked; without ptxas the driver compiles the PTX."""
    ptx = saxpy.compile(target="sm_90a").ir("ptx")
    assert isinstance(ptx, str)
    made = building.make([ptx.encode()], ["k.ptx"])
    assert library.images(made.data)[0].data == images["sm_90a", "saxpy"]
    monkeypatch.setenv("FLY_PTXAS", "none")
    warned: list[str] = []
    made = building.make([ptx.encode()], ["k.ptx"], for_cpu=True, warn=warned.append)
    assert len(warned) == 1
    assert library.images(made.data)[0].data.startswith(b"//")


def test_inputs_that_differ(images):
    sm_80, sm_90a = images["sm_80", "saxpy"], images["sm_90a", "saxpy"]
    names = ["one.cubin", "two.cubin"]
    assert refusal([sm_80, images["sm_90a", "row_sums"]], names) == (
        "one.cubin and two.cubin differ in the host function: saxpy, and row_sums"
    )
    assert refusal([sm_80, sm_80], names) == "one.cubin and two.cubin are both for sm_80"
    other = fly.jit(_named(other_saxpy.function, "saxpy")).compile(target="sm_80").data
    assert refusal([sm_90a, other], names) == (
        "one.cubin and two.cubin differ in its parameters: X, Y, a, and X, Y, b"
    )


def _named(plain, name):
    plain.__name__ = name
    return plain


@fly.jit
def other_saxpy(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], b: fx.Float32):
    touch(X).launch(grid=1, block=1)


@fly.kernel
def touch(A: fx.Tensor):
    A[0] = 1.0


@fly.kernel
def touch_row(A: fx.Tensor):
    A[0, 0] = 1.0


@fly.jit
def untouched(n: fx.Int32):
    A = fx.empty((4,), fx.Float32)
    touch(A).launch(grid=n, block=1)
    return A


@fly.jit
def malloc(A: fx.Tensor[fx.Float32, "n"]):
    touch(A).launch(grid=1, block=1)


@fly.jit
def fly_own(A: fx.Tensor[fx.Float32, "n"]):
    touch(A).launch(grid=1, block=1)


@fly.jit
def multiplied(A: fx.Tensor[fx.Float32, "m", "k"], B: fx.Tensor[fx.Float32, "k", "n"]):
    C = fx.call("numpy.matmul", A, B)
    touch_row(C).launch(grid=1, block=1)
    return C


@fly.jit
def clustered(A: fx.Tensor[fx.Float32, "n"]):
    touch(A).launch(grid=2, block=1, cluster=2)


def test_clusters_need_a_gpu(images):
    image = clustered.compile(target="sm_90a").data
    assert refusal([image], ["k.cubin"], for_cpu=True) == (
        "kernel 'touch' runs in clusters of blocks, which a library does not have on a processor"
    )
    assert building.make([image], ["k.cubin"]).data


def test_functions_that_a_library_cannot_have(images):
    def said(host, target="sm_90a", **more):
        return refusal([host.compile(target=target).data], ["k.bin"], **more)

    assert said(untouched).startswith("k.bin: untouched has no tensor among its parameters")
    assert said(malloc) == (
        "k.bin: the host function has the name of a function of the C library, malloc"
    )
    assert said(fly_own).endswith("fly_own, begins with fly_, as the library's own do")
    assert said(multiplied).endswith(
        "multiplied calls the library function numpy.matmul, which is Python's"
    )
    assert said(saxpy, "gfx942", for_cpu=True) == (
        "--cpu needs code for one of NVIDIA's targets, whose LLVM IR it compiles: k.bin (gfx942)"
    )


def test_what_is_no_input(images):
    assert "is Python source" in refusal([b"import fly\n"], ["f.py"])
    made = building.make([images["gfx942", "saxpy"]], ["a"]).data
    assert "an ELF file for another machine" in refusal([made], ["libsaxpy.so"])


@pytest.mark.parametrize(("target", "limited"), [("sm_90a", False), ("gfx942", True)])
def test_grids_are_limited_as_the_device_does(images, target, limited):
    """Only AMD's GPUs count the work items of a grid."""
    image = fly.load(images[target, "saxpy"]).image
    assert image.program is not None
    text = function.write("f", image.program, limits_of(image.program, image))
    assert (", 4294967295" in text) == limited


# -- names in C


@fly.kernel
def words_kernel(A: fx.Tensor, x: fx.Float32):
    A[0] = x


@fly.jit
def words(int: fx.Tensor[fx.Float32, "n"], stream: fx.Float32, register: fx.Boolean):
    if register:
        words_kernel(int, stream).launch(grid=1, block=1)


def test_names_that_are_words_of_c(tmp_path):
    made = Library.of(words, tmp_path)
    wanted = "int words(const DLTensor *int_, float stream, bool register_, void *stream_);"
    assert wanted in made.header
    A = np.zeros(4, np.float32)
    assert made.call(A, 3.0, False)[0] == 0
    assert A[0] == 0
    assert made.call(A, 3.0, True)[0] == 0
    assert A[0] == 3
    assert made.call(None, 3.0, True)[0] == 2
    assert made.error() == "int_ is a null pointer"


# -- reading libraries


def test_a_library_is_loaded_by_python(images):
    given = [images["gfx942", "row_sums"], images["sm_90a", "row_sums"]]
    made = fly.load(building.make(given, ["a", "b"]).data)
    assert made.targets == ("gfx942", "sm_90a")
    A = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(made(A), A.sum(1))
    for device in ("cpu", "emulator"):
        outcome = made.run({"A": A}, device=device)
        np.testing.assert_array_equal(outcome.results, A.sum(1))
    with pytest.raises(fly.MissingError, match="the device cpu runs code for NVIDIA's targets"):
        fly.load(building.make(given[:1], ["a"]).data).run({"A": A}, device="cpu")
    assert fly.load(given[0]).targets == ("gfx942",)


def test_damaged_libraries_are_refused(images):
    made = building.make([images["sm_90a", "saxpy"]], ["a"]).data
    at = made.index(library.MAGIC)
    for place, value in ((at, 0), (at + 8, 0), (at + 23, 255), (at + 31, 255)):
        damaged = bytearray(made)
        damaged[place] = value
        with pytest.raises(InputError, match="image"):
            library.images(bytes(damaged), "libf.so")
    for size in (64, 1000, at + 10, len(made) - 1):
        with pytest.raises(InputError):
            library.images(made[:size], "libf.so")


# -- the runtime


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("library", ("text", "tensors", "blocks", "drivers", "devices", "calls")),
        ("cpu", ("cpu", "faults", "printing")),
    ],
)
def test_the_llvm_ir_is_of_these_sources(name, sources):
    """scripts/library-runtime has to be run when one changes."""
    headers = sorted(RUNTIME.glob("*.h"))
    found = [*headers, *(RUNTIME / f"{source}.c" for source in sources)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest()
    assert digest in (RUNTIME / f"{name}.ll").read_text().splitlines()[1]


def test_every_source_belongs_to_a_module():
    names = {
        "text",
        "tensors",
        "blocks",
        "drivers",
        "devices",
        "calls",
        "cpu",
        "faults",
        "printing",
    }
    assert {path.stem for path in RUNTIME.glob("*.c")} == names


def test_the_record_of_the_device_is_the_runtimes():
    """cpu.h has the words of `fly_cpu.state` and its numbers."""
    text = (RUNTIME / "cpu.h").read_text()
    words = text[text.index("ENTRY") : text.index("};")].replace("\n", " ").split(",")
    assert [word.strip().lower() for word in words] == list(state.WORDS)
    assert f"MOST_REGIONS = {state.MOST_REGIONS}," in text
    assert f"STACK = {state.STACK >> 10} << 10" in text
    assert f"SLICE_TURNS = {state.TURNS} " in text
    assert f"WAITS_FOR_BARRIER = {state.BARRIER}, WAITS_FOR_MBARRIER = {state.MBARRIER}, " in text
    statuses = (state.FINISHED, state.SLICE, state.FAULT, state.PRINT)
    assert statuses == (0, 1, 2, 3)
    faults = (RUNTIME / "faults.c").read_text()
    kinds = faults[faults.index("UNMAPPED") : faults.index("};")].split(",")
    named = [kind.strip().lower().replace("_", "-") for kind in kinds]
    plain = {"full-stack": "stack", "in-cluster": "cluster"}  # a name that another enum has
    assert [plain.get(kind, kind) for kind in named] == list(state.KINDS)
    assert f"WAITS_FOR_CLUSTER = {state.CLUSTER}, MOST_BARRIERS = {state.MOST_BARRIERS} " in text


def test_row_sums_is_the_same_on_each_way(images, libraries):
    made = Library(libraries / "librow_sums.so", fly.load(images["sm_90a", "row_sums"]).program)
    A = np.random.default_rng(0).standard_normal((4, 100)).astype(np.float32)
    status, (found,) = made.call(A)
    assert status == 0
    np.testing.assert_array_equal(found, row_sums(A))

"""Each guard of a launcher, missed once: NotImplemented, and nothing has happened."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from fly_host import program as host
from fly_host.native import calling
from fly_host.native.specialisation import KernelLimits, Options, specialise
from fly_host.program import Word

from .recording import RecordingDriver, limits_of

torch: Any = pytest.importorskip("torch")


def program(*parameters: Any, **changes: Any) -> host.Program:
    """One launch of all parameters."""
    words = tuple(
        (Word("pointer" if isinstance(p, host.Tensor) else "scalar", p.name),)
        for p in parameters
        if not isinstance(p, host.Stream)
    )
    launch = host.Launch("k", (0, 0, 0), (0, 0, 0), 1, words)
    expressions = changes.pop("expressions", (("const", 1), ("const", 0)))
    steps = changes.pop("steps", (launch,))
    return host.Program("f", "gfx942", parameters, expressions, steps, **changes)


def native(made: host.Program, *arguments: Any, **options: Any) -> tuple[Any, RecordingDriver]:
    limits = options.pop("limits", None) or limits_of(made)
    driver = RecordingDriver(len(made.launches))
    return calling.compile(specialise(made, arguments, limits), driver.entry(**options)), driver


def misses(made: host.Program, good: tuple[Any, ...], *bad: tuple[Any, ...]) -> None:
    found, driver = native(made, *good)
    assert found.call(*good) is None
    assert len(driver.log) == 1
    for arguments in bad:
        assert found.call(*arguments) is NotImplemented, arguments
    assert len(driver.log) == 1
    assert found.call(*good) is None


def full(*shape: int, dtype: Any = None) -> Any:
    return torch.zeros(shape, dtype=dtype)


def test_count() -> None:
    one = host.Tensor("A", "f32", (None,), (None,), "r")
    a = full(3)
    misses(program(one, host.Scalar("n", "i32")), (a, 1), (), (a,), (a, 1, 1))


def test_defaults_stand_for_arguments_that_are_left_out() -> None:
    parameters = (
        host.Scalar("a", "i32"),
        host.Scalar("b", "i32", 7),
        host.Scalar("c", "f32", 2),
        host.Stream("s"),
    )
    found, driver = native(program(*parameters), 1)
    for arguments in ((1,), (1, 7), (1, 7, 2.0), (1, 7, 2, None)):
        assert found.call(*arguments) is None
    assert len({log[3] for log in driver.log}) == 1
    assert found.call() is NotImplemented
    assert found.call(1, 7, 2, None, None) is NotImplemented


class Subclass(torch.Tensor):
    pass


def test_torch_types() -> None:
    made = program(host.Tensor("A", "f32", (None,), (None,), "r"))
    a = full(3)
    negative = torch.zeros(3, dtype=torch.complex64).conj().imag
    assert negative.is_neg()
    misses(
        made,
        (a,),
        (a.numpy(),),
        (a.as_subclass(Subclass),),
        (torch.empty(3, device="meta"),),
        (torch.eye(3).to_sparse(),),
        (negative,),
        (None,),
        ([1.0],),
        (1,),
        (full(3, dtype=torch.float64),),
        (full(3, dtype=torch.int32),),
        (full(3, 1),),
        (full(),),
    )
    found, _ = native(made, a)
    assert found.call(torch.nn.Parameter(a)) is None
    assert found.call(full(3).requires_grad_()) is None


def test_a_miss_leaves_no_error_behind() -> None:
    found, _ = native(program(host.Tensor("A", "f32", (None,), (None,), "r")), full(3))
    assert found.call(torch.empty(3, device="meta")) is NotImplemented
    assert found.call(full(3)) is None


def test_fake_tensors_are_missed() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    found, _ = native(program(host.Tensor("A", "f32", (None,), (None,), "r")), full(3))
    with FakeTensorMode() as mode:
        assert found.call(mode.from_tensor(full(3))) is NotImplemented


def test_numpy_types() -> None:
    a = numpy.zeros(3, numpy.float32)
    crooked = numpy.zeros(13, numpy.uint8)[1:].view(numpy.float32)
    misses(
        program(host.Tensor("A", "f32", (None,), (None,), "r")),
        (a,),
        (torch.zeros(3),),
        (a.view(numpy.matrix) if hasattr(numpy, "matrix") else None,),
        (a.astype(">f4"),),
        (a.astype(numpy.float64),),
        (a.reshape(3, 1),),
        (crooked,),
        (numpy.zeros(4, "f4,i1")["f0"],),
        (numpy.float32(1),),
    )


def test_numpy_read_only_arrays() -> None:
    made = program(host.Tensor("A", "f32", (None,), (None,), "w"))
    a, fixed = numpy.zeros(3, numpy.float32), numpy.zeros(3, numpy.float32)
    fixed.flags.writeable = False
    misses(made, (a,), (fixed,))
    read, _ = native(program(host.Tensor("A", "f32", (None,), (None,), "r")), fixed)
    assert read.call(fixed) is None


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_layouts(kind: str) -> None:
    def array(*shape: int) -> Any:
        return full(*shape) if kind == "torch" else numpy.zeros(shape, numpy.float32)

    def tensor(shape: Any, strides: Any, access: str = "r", **more: Any) -> host.Program:
        return program(host.Tensor("A", "f32", shape, strides, access, **more))

    a = array(4, 6)
    misses(tensor((4, None), (None, None)), (a,), (array(3, 6),), (array(0, 6),))
    misses(tensor(("n", "n"), (None, None)), (array(4, 4),), (a,))
    misses(tensor((None, None), (None, 1)), (a,), (a.T,), (a[:, ::2],))
    misses(tensor((None, None), (6, None)), (a,), (array(4, 5),))
    misses(tensor((None, None), (None, None), contiguous=True), (a,), (a.T,), (a[:, 1:],))
    some = tensor((None, None), (None, None), multiples=(2, 3, 6, 1))
    misses(some, (a,), (array(3, 6),), (array(4, 4),), (array(4, 12)[:, 3:6:1][:, ::2],), (a.T,))
    # Strides are free where there are less than two elements, or none.
    found, _ = native(tensor((None, None), (None, 1), contiguous=True), a)
    assert found.call(array(5, 3)[:, :1][:1]) is None
    assert found.call(array(0, 3).T) is None


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_alignment_that_kernels_rely_on(kind: str) -> None:
    memory = numpy.zeros(200, numpy.float32)
    start = -(memory.ctypes.data // 4) % 16  # the element at a multiple of 64 bytes

    def array(offset: int) -> Any:
        made = memory[start + offset : start + offset + 96]
        return torch.from_numpy(made) if kind == "torch" else made

    for nbytes in (8, 16, 64):
        one = program(host.Tensor("A", "f32", (None,), (None,), "r", alignment=nbytes))
        bad = [(array(offset),) for offset in range(1, 17) if 4 * offset % nbytes]
        misses(one, (array(0),), *bad)
        misses(one, (array(nbytes // 4),), *bad)
    # Guards of tensors that differ in it are not shared.
    both = program(
        host.Tensor("A", "f32", (None,), (None,), "r"),
        host.Tensor("B", "f32", (None,), (None,), "r", alignment=16),
    )
    misses(both, (array(1), array(0)), (array(0), array(1)))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_written_tensors_must_not_overlap_themselves(kind: str) -> None:
    def spread(shape: Any, strides: Any) -> Any:
        if kind == "torch":
            return torch.zeros(100).as_strided(shape, strides)
        memory = numpy.zeros(100, numpy.float32)
        return numpy.lib.stride_tricks.as_strided(memory, shape, [4 * s for s in strides])

    made = program(host.Tensor("A", "f32", (None, None), (None, None), "w"))
    misses(
        made,
        (spread((4, 6), (6, 1)),),
        (spread((4, 6), (0, 1)),),
        (spread((4, 6), (5, 1)),),
        (spread((4, 6), (1, 1)),),
    )
    found, _ = native(made, spread((4, 6), (6, 1)))
    for shape, strides in (((4, 6), (1, 4)), ((4, 6), (8, 1)), ((1, 6), (0, 1)), ((0, 6), (0, 0))):
        assert found.call(spread(shape, strides)) is None


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_written_tensors_in_the_order_that_a_launcher_was_made_for(kind: str) -> None:
    """As torch's channels_last."""
    made = program(host.Tensor("A", "f32", (None,) * 4, (None,) * 4, "w"))
    last, first = full(2, 3, 4, 5).to(memory_format=torch.channels_last), full(2, 3, 4, 5)
    other = full(2, 5, 3, 4).permute(0, 2, 1, 3)
    if kind == "numpy":
        last, first, other = last.numpy(), first.numpy(), other.numpy()
    found, _ = native(made, last)
    assert found.call(last) is None
    assert found.call(first) is None
    assert found.call(other) is NotImplemented
    assert native(made, first)[0].call(last) is NotImplemented


def test_alignment() -> None:
    made = program(host.Tensor("A", "f32", (None,), (None,), "r"))
    memory = numpy.zeros(17, numpy.uint8)
    start = 1 - memory.ctypes.data % 4 if memory.ctypes.data % 4 else 1
    crooked = torch.frombuffer(memory, dtype=torch.float32, count=3, offset=start)
    misses(made, (full(3),), (crooked,))


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("i8", (-128, 127), (-129, 128, True, 1.0, numpy.int8(1), None, 1 << 70)),
        ("u8", (0, 255), (-1, 256, "1")),
        ("i32", (-(1 << 31), (1 << 31) - 1), (1 << 31, -(1 << 31) - 1)),
        ("u32", (0, (1 << 32) - 1), (-1, 1 << 32)),
        ("i64", (-(1 << 63), (1 << 63) - 1), (1 << 63, -(1 << 63) - 1)),
        ("u64", (0, (1 << 64) - 1), (-1, 1 << 64)),
        ("bool", (True, False), (1, 0, None, numpy.bool_(True))),
        ("f16", (65504.0, -1, float("inf")), (65520.0, 1 << 17, numpy.float64(1), None)),
        ("bf16", (3.3e38, 1), (3.4e38, 1 << 200)),
        ("f32", (3.4e38, 2), (3.5e38, 1 << 200, 10**400)),
        ("f64", (1e308, 2), (10**400, "1", None)),
    ],
)
def test_scalars(dtype: str, good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    from fly_run.launch.arrays.dtypes import pack_scalar

    made = program(host.Scalar("x", dtype))
    found, driver = native(made, good[0])
    for value in good:
        assert found.call(value) is None
        content = pack_scalar(value, dtype)
        assert driver.log[-1][3][: len(content)] == content
    count = len(driver.log)
    for value in bad:
        assert found.call(value) is NotImplemented, value
    assert len(driver.log) == count


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_floats_are_rounded_as_by_python(dtype: str) -> None:
    import random
    import struct

    from fly_run.launch.arrays.dtypes import pack_scalar

    found, driver = native(program(host.Scalar("x", dtype)), 1.0)
    numbers = random.Random(1)
    for _ in range(3000):
        (value,) = struct.unpack("<d", struct.pack("<Q", numbers.getrandbits(64)))
        if numbers.random() < 0.8:
            value = numbers.uniform(-2, 2) * 2.0 ** numbers.randint(-40, 20)
        try:
            content = pack_scalar(value, dtype)
        except OverflowError:
            assert found.call(value) is NotImplemented
            continue
        assert found.call(value) is None
        if value == value:  # the bits of what is no number are free
            assert driver.log[-1][3][: len(content)] == content, value


def test_streams() -> None:
    made = program(host.Scalar("n", "i32"), host.Stream("s"))
    launch = made.launches[0]
    made = program(
        *made.parameters,
        steps=(host.Launch(*(launch.kernel, launch.grid, launch.block, 1, launch.arguments), "s"),),
    )

    class Stream:
        cuda_stream = 99

    class Wrong:
        cuda_stream = "x"

    found, driver = native(made, 1, stream=lambda: 42)
    for stream in (None, 7, Stream()):
        assert found.call(1, stream) is None
    assert found.call(1) is None
    assert [log[2] for log in driver.log] == [42, 7, 99, 42]
    for stream in ("x", object(), Wrong(), -(1 << 70)):
        assert found.call(1, stream) is NotImplemented
    assert len(driver.log) == 4
    plain, driver = native(made, 1)
    assert plain.call(1) is None
    assert driver.log[0][2] == 0

    def lost() -> int:
        raise OSError("no device")

    wrong, driver = native(made, 1, stream=lost)
    with pytest.raises(OSError, match="no device"):
        wrong.call(1)
    assert wrong.call(1, 7) is None
    assert len(driver.log) == 1


def test_limits_of_launches() -> None:
    """A launch that is not allowed is a miss before the first step."""
    names = ("gx", "gy", "bx", "by", "shared")
    parameters = tuple(host.Scalar(name, "i64") for name in names)
    expressions = (*(("scalar", name) for name in names), ("const", 1))
    launch = host.Launch("k", (0, 1, 5), (2, 3, 5), 4, ())
    made = program(*parameters, expressions=expressions, steps=(launch,))
    limits = [KernelLimits(0, (), 256, 1000, None, (1 << 31, 65535, 65535))]
    found, driver = native(made, 1, 1, 1, 1, 0, limits=limits)
    for good in ((1, 1, 256, 1, 0), (1, 1, 16, 16, 1000), (65535, 65535, 1, 1, 0)):
        assert found.call(*good) is None
    assert len(driver.log) == 3
    for bad in (
        (1, 1, 257, 1, 0),
        (1, 1, 17, 16, 0),
        (1, 1, 0, 1, 0),
        (1, 1, -1, -1, 0),
        (-1, 1, 1, 1, 0),
        (1 << 24, 1, 256, 1, 0),
        (1, 65536, 1, 1, 0),
        (1 << 62, 1, 4, 1, 0),
        (1, 1, 1 << 32, 1 << 32, 0),
        (1, 1, 1, 1, 1001),
        (1, 1, 1, 1, -1),
    ):
        assert found.call(*bad) is NotImplemented, bad
    assert found.call(0, 5, 1, 1, 0) is None  # an empty grid launches nothing
    assert len(driver.log) == 3
    required = [KernelLimits(0, (), 256, 1000, (64, 1, 1))]
    found, _ = native(made, 1, 1, 64, 1, 0, limits=required)
    assert found.call(1, 1, 64, 1, 0) is None
    assert found.call(1, 1, 32, 1, 0) is NotImplemented
    clustered = [KernelLimits(0, (), 256, 1000, cluster=(2, 3, 1))]
    found, driver = native(made, 2, 3, 64, 1, 0, limits=clustered)
    for good in ((2, 3, 64, 1, 0), (8, 6, 64, 1, 0), (0, 3, 64, 1, 0)):
        assert found.call(*good) is None
    assert len(driver.log) == 2
    for bad in ((3, 3, 64, 1, 0), (2, 2, 64, 1, 0), (1, 1, 64, 1, 0)):
        assert found.call(*bad) is NotImplemented, bad


def test_extents_over_31_bits() -> None:
    """Nothing is allocated: a stride of 0 makes an array of any extent."""
    shape = (1 << 33, 3)
    words = tuple((Word("integer", None, n, 8),) for n in (0, 1, 2))
    launch = host.Launch("k", (4, 4, 4), (4, 4, 4), 5, words)
    made = program(
        host.Tensor("A", "i8", (None, None), (None, None), "r"),
        expressions=(
            *(("extent", "A", 0), ("stride", "A", 0), ("mul", 0, 0)),
            *(("mul", 0, 3), ("const", 1), ("const", 0)),
        ),
        steps=(launch,),
    )
    made = host.Program(*("f", "gfx942", made.parameters, _square(made.expressions), made.steps))
    big = torch.zeros(1, dtype=torch.int8).expand(shape)
    found, driver = native(made, big)
    assert found.call(big) is NotImplemented  # 2^66 is no 64-bit integer
    small = torch.zeros(1, dtype=torch.int8).expand((1 << 31, 3))
    assert found.call(small) is None
    numbers = [int.from_bytes(driver.log[0][3][at : at + 8], "little") for at in (0, 8, 16)]
    assert numbers == [1 << 31, 0, 1 << 62]


def _square(expressions: Any) -> Any:
    return tuple(("const", 0) if e == ("mul", 0, 3) else e for e in expressions)


def test_fp8_and_bf16_arrays() -> None:
    for name, dtype in (("bf16", "bfloat16"), ("f8E4M3FN", "float8_e4m3fn")):
        made = program(host.Tensor("A", name, (None,), (None,), "r"))
        good = torch.zeros(4, dtype=torch.float32).to(getattr(torch, dtype))
        misses(made, (good,), (torch.zeros(4, dtype=torch.float16),), (good.view(torch.uint8),))
        ml_dtypes = pytest.importorskip("ml_dtypes")
        array = numpy.zeros(4, getattr(ml_dtypes, dtype))
        misses(made, (array,), (array.view(f"u{array.itemsize}"),))
        misses(made, (array.view(f"u{array.itemsize}"),), (array,))


def alike(count: int) -> tuple[host.Program, tuple[Any, ...]]:
    """A program of that many tensors of 4 dimensions, written ones last, and as many floats."""
    names = [f"T{number}" for number in range(count)]
    parameters: list[Any] = [
        host.Tensor(name, "f32", ("n", None, None, None), (None,) * 4, access)
        for name, access in zip(names, [*["r"] * (count - 1), "rw"], strict=True)
    ]
    parameters += [host.Scalar(f"x{number}", "bf16") for number in range(count)]
    return program(*parameters), (*[full(2, 3, 4, 5)] * count, *[1.5] * count)


@pytest.mark.parametrize("in_process", [True, False])
def test_parameters_that_are_guarded_alike_share_a_guard(in_process: bool) -> None:
    made, arguments = alike(14)
    limits, driver = limits_of(made), RecordingDriver(1)
    options = Options(in_process=in_process)
    specialisation = specialise(made, arguments, limits)
    found = calling.compile(specialisation, driver.entry(), None, options)
    # Of tensors that are read, of one that is written, of the floats.
    assert found.llvm().count("define internal zeroext i1 @guard") == 3
    assert found.call(*arguments) is None
    assert len(driver.log) == 1
    for position in range(14):
        for bad in (full(3, 3, 4, 5), full(2, 3, 4), full(2, 3, 4, 5).double(), None):
            given = (*arguments[:position], bad, *arguments[position + 1 :])
            assert found.call(*given) is NotImplemented
    assert found.call(*[full(3, 3, 4, 5)] * 14, *arguments[14:]) is None
    for position in range(14, 28):
        for bad in (1e39, "1", None):
            given = (*arguments[:position], bad, *arguments[position + 1 :])
            assert found.call(*given) is NotImplemented
    assert len(driver.log) == 2


def test_a_launcher_is_not_much_longer_for_more_tensors() -> None:
    lines = [len(native(*_flat(alike(count)))[0].llvm().splitlines()) for count in (2, 3, 4)]
    assert lines[2] - lines[1] == lines[1] - lines[0] < 60


def _flat(made: tuple[host.Program, tuple[Any, ...]]) -> tuple[Any, ...]:
    return (made[0], *made[1])

"""The plugin sanitize: planted races, what is no race, and its limits."""

import re

import numpy as np
import pytest
from fly_common.errors import Fault, FlyError
from planted import DEVICES, check_line, defects, on, sanitize_kernels, seen
from planted.sanitize_kernels import BLOCK, CASES, floats

import fly
import fly.expr as fx

pytestmark = pytest.mark.usefixtures("checks")
VECTOR = fx.Tensor[fx.Float32, 256]
KINDS = {
    "no_barrier": {"store", "load"},
    "tile_loop": {"store", "load"},
    "double_buffer": {"store", "load"},
    "reduction": {"store", "load"},
    "used_again": {"store", "load"},
    "same_word": {"store"},
    "counting": {"atomic update", "load"},
    "clearing": {"store", "atomic update"},
    "prefix_sum": {"store", "load"},
    "wide_copies": {"store", "load"},
}
SAID = re.compile(
    r"sanitize: race on shared memory: this ([a-z ]+) and the ([a-z ]+) at (\S+):(\d+) by thread"
    r" \((\d+), (\d+), (\d+)\) are not ordered by a barrier; byte (\d+);"
    r" block \((\d+), (\d+), (\d+)\) thread \((\d+), (\d+), (\d+)\)(; \d+ more)?( on \d+ lines)?"
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_race_is_found(case, device, monkeypatch):
    with on(device, monkeypatch), pytest.raises(Fault) as caught:
        case(*CASES[case]())
    check_line(sanitize_kernels, case, caught.value)
    match = SAID.fullmatch(seen(caught.value))
    assert match is not None, caught.value.message
    first, second, file, line, *rest = match.groups()
    assert {first, second} == KINDS[case.__name__]
    assert file == sanitize_kernels.__file__
    assert int(line) in defects(sanitize_kernels, case)
    numbers = list(map(int, rest[:10]))
    x = 16 if case.__name__ == "tile_loop" else 256
    waves = [(one[0] + x * one[1]) // (64 if device == "gfx942" else 32)
             for one in (numbers[:3], numbers[7:])]  # fmt: skip
    assert waves[0] != waves[1]


def test_there_are_ten():
    assert {case.__name__ for case in CASES} == set(KINDS)
    assert len(CASES) >= 10


# -- what is no race


@fly.kernel
def alike_kernel(X: fx.Tensor, Y: fx.Tensor):
    slot = fx.shared_array(fx.Float32, 2)
    tid = fx.thread_idx.x
    slot[0] = X[7]
    Y[tid] = slot[0]


@fly.jit(plugins=["sanitize"])
def alike(X: VECTOR, Y: VECTOR):
    alike_kernel(X, Y).launch(grid=2, block=BLOCK)


@fly.kernel
def lanes_kernel(X: fx.Tensor, Y: fx.Tensor):
    scratch = fx.shared_array(fx.Float32, BLOCK)
    tid = fx.thread_idx.x
    scratch[tid] = X[tid]
    Y[tid] = scratch[tid ^ 1]


@fly.jit(plugins=["sanitize"])
def lanes(X: VECTOR, Y: VECTOR):
    lanes_kernel(X, Y).launch(grid=1, block=BLOCK)


@fly.kernel
def halves_kernel(X: fx.Tensor, Y: fx.Tensor):
    """Two waves store the two halves of a word."""
    packed = fx.shared_array(fx.Float16, BLOCK)
    tid = fx.thread_idx.x
    place = tid % 128 * 2 + tid // 128
    packed[place] = fx.Float16(X[tid])
    fx.barrier()
    Y[tid] = fx.Float32(packed[place])


@fly.jit(plugins=["sanitize"])
def halves(X: VECTOR, Y: VECTOR):
    halves_kernel(X, Y).launch(grid=1, block=BLOCK)


@fly.kernel
def stages_kernel(X: fx.Tensor, Y: fx.Tensor):
    stage = fx.shared_array(fx.Float32, (2, BLOCK))
    tid = fx.thread_idx.x
    total = fx.Float32(0)
    stage[0, tid] = X[tid]
    fx.barrier()
    for k in range(fx.Int64(0), X.shape[0] // BLOCK - 1):
        stage[(k + 1) % 2, tid] = X[(k + 1) * BLOCK + tid]
        total = total + stage[k % 2, BLOCK - 1 - tid]
        fx.barrier()
    Y[tid] = total


@fly.jit(plugins=["sanitize"])
def stages(X: fx.Tensor[fx.Float32, "n"], Y: VECTOR):
    stages_kernel(X, Y).launch(grid=1, block=BLOCK)


@fly.kernel
def counted_kernel(data: fx.Tensor, counts: fx.Tensor):
    local = fx.shared_array(fx.Int32, 8)
    tid = fx.thread_idx.x
    if tid < 8:
        local[tid] = 0
    fx.barrier()
    fx.atomic_add(local, fx.Int32(data[tid]) % 8, 1)
    fx.atomic_add(local, (fx.Int32(data[tid]) + 1) % 8, 1)
    fx.barrier()
    if tid < 8:
        counts[tid] = local[tid]


@fly.jit(plugins=["sanitize"])
def counted(data: fx.Tensor[fx.Uint8, 256], counts: fx.Tensor[fx.Int32, 8]):
    counted_kernel(data, counts).launch(grid=1, block=BLOCK)


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_no_race(device, monkeypatch):
    x, y = floats(256), np.zeros(256, np.float32)
    with on(device, monkeypatch):
        alike(x, y)
        np.testing.assert_array_equal(y, x[7])
        if not device.startswith("sm_"):  # there, lanes of a warp have to synchronise
            lanes(x, y)
            np.testing.assert_array_equal(y, x.reshape(-1, 2)[:, ::-1].ravel())
        halves(x, y)
        np.testing.assert_array_equal(y, x.astype(np.float16).astype(np.float32))
        many = floats(1280)
        stages(many, y)
        wanted = many.reshape(5, 256)[:4, ::-1]
        np.testing.assert_allclose(y, wanted.sum(0), rtol=1e-5, atol=1e-6)
        data, counts = np.arange(256, dtype=np.uint8), np.zeros(8, np.int32)
        for _ in range(3):  # shadow memory begins anew with each launch
            counted(data, counts)
            np.testing.assert_array_equal(counts, 64)


# -- shadow memory


@fly.kernel
def last_kernel(X: fx.Tensor, Y: fx.Tensor, wrong: fx.Int32):
    tile = fx.shared_array(fx.Float32, BLOCK)
    tid, block = fx.thread_idx.x, fx.block_idx.x
    tile[tid] = X[tid]
    if block != wrong:
        fx.barrier()
    Y[tid] = tile[BLOCK - 1 - tid]


@fly.jit(plugins=["sanitize"])
def last(X: VECTOR, Y: VECTOR, wrong: fx.Int32):
    last_kernel(X, Y, wrong).launch(grid=100, block=BLOCK)


@pytest.mark.parametrize("blocks", [1, 64])
def test_blocks_share_shadow_memory(blocks, monkeypatch):
    """Blocks that run one after another on the same shadow memory don't race with each other."""
    monkeypatch.setenv("FLY_SANITIZE_BLOCKS", str(blocks))
    x, y = floats(256), np.zeros(256, np.float32)
    with on("gfx942", monkeypatch):
        last(x, y, 100)
        for wrong in (0, 99):
            with pytest.raises(Fault, match=rf"block \({wrong}, 0, 0\) thread"):
                last(x, y, wrong)


@fly.kernel
def dynamic_kernel(X: fx.Tensor, Y: fx.Tensor, synchronise: fx.Constexpr[bool]):
    other = fx.shared_array(fx.Float32, 64)
    memory = fx.recast_iter(fx.Float32, fx.get_dyn_shared())
    tile = fx.make_view(memory, fx.make_layout(BLOCK, 1))
    tid = fx.thread_idx.x
    other[tid % 64] = 1.0
    tile[tid] = X[tid]
    if synchronise:
        fx.barrier()
    Y[tid] = tile[BLOCK - 1 - tid] * other[tid % 64]


@fly.jit(plugins=["sanitize"])
def dynamic(X: VECTOR, Y: VECTOR, synchronise: fx.Constexpr[bool]):
    dynamic_kernel(X, Y, synchronise).launch(grid=1, block=BLOCK, smem=1024)


@pytest.mark.parametrize("device", DEVICES)
def test_dynamic_shared_memory(device, monkeypatch):
    x, y = floats(256), np.zeros(256, np.float32)
    with on(device, monkeypatch):
        dynamic(x, y, True)
        np.testing.assert_array_equal(y, x[::-1])
        with pytest.raises(Fault, match=r"race on shared memory: .* byte \d+;"):
            dynamic(x, y, False)


# -- kernels that it can't follow


@fly.kernel
def partial_kernel(X: fx.Tensor, Y: fx.Tensor):
    tile = fx.shared_array(fx.Float32, BLOCK)
    tid = fx.thread_idx.x
    tile[tid] = X[tid]
    fx.nvvm.barrier_sync(1, BLOCK)
    Y[tid] = tile[BLOCK - 1 - tid]


@fly.jit(plugins=["sanitize"])
def partial(X: VECTOR, Y: VECTOR):
    partial_kernel(X, Y).launch(grid=1, block=BLOCK)


def test_other_barriers_are_refused(monkeypatch):
    x, y = floats(256), np.zeros(256, np.float32)
    with on("sm_90a", monkeypatch):
        with pytest.raises(FlyError) as caught:
            partial(x, y)
        assert "kernel partial_kernel orders its threads by llvm.nvvm.barrier" in str(caught.value)
        assert "--sanitize-skip=partial_kernel" in caught.value.hint
        monkeypatch.setenv("FLY_SANITIZE_SKIP", "partial_kernel")
        partial(x, y)
    np.testing.assert_array_equal(y, x[::-1])


def test_a_kernel_without_shared_memory_has_no_reports(monkeypatch):
    @fly.kernel
    def plain_kernel(X: fx.Tensor, Y: fx.Tensor):
        Y[fx.thread_idx.x] = X[fx.thread_idx.x]

    @fly.jit(plugins=["sanitize"])
    def plain(X: VECTOR, Y: VECTOR):
        plain_kernel(X, Y).launch(grid=1, block=BLOCK)

    with on("gfx942", monkeypatch):
        made = plain.compile(floats(256), np.zeros(256, np.float32))
    assert b"fly_reports" not in made.hsaco


def test_both_plugins(monkeypatch):
    """Their reports are in one table; the first one that a thread makes is shown."""

    @fly.kernel
    def both_kernel(X: fx.Tensor, Y: fx.Tensor, extra: fx.Int32):
        tile = fx.shared_array(fx.Float32, BLOCK)
        tid = fx.thread_idx.x
        tile[tid] = X[tid + extra]
        Y[tid] = tile[BLOCK - 1 - tid]

    @fly.jit(plugins=["bounds", "sanitize"])
    def both(X: VECTOR, Y: VECTOR, extra: fx.Int32):
        both_kernel(X, Y, extra).launch(grid=1, block=BLOCK)

    x, y = floats(256), np.zeros(256, np.float32)
    with on("gfx942", monkeypatch):
        with pytest.raises(Fault, match="sanitize: race on shared memory"):
            both(x, y, 0)
        with pytest.raises(Fault, match="bounds: load of X: index -1 is out of bounds"):
            both(x, y, -1)

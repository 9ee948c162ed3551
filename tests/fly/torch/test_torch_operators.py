"""Functions as operators of torch: what torch's own checks say of them."""

import inspect
from pathlib import Path

import pytest
from fly_common.errors import UsageError
from fly_trace.session.load import load_file

torch = pytest.importorskip("torch")
operators_module = pytest.importorskip("fly.torch.operators")

PROGRAM = """
import fly
import fly.expr as fx


@fly.kernel
def scale_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64, a: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        Y[i] = X[i] * a


@fly.jit
def scaled(X: fx.Tensor[fx.Float32, "n"], a: fx.Float32 = 2.0):
    n = X.shape[0]
    Y = fx.empty_like(X)
    scale_kernel(X, Y, n, a).launch(grid=fx.ceildiv(n, 64), block=64)
    return Y


@fly.jit
def scale_to(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], a: fx.Float32):
    n = X.shape[0]
    scale_kernel(X, Y, n, a).launch(grid=fx.ceildiv(n, 64), block=64)


@fly.kernel
def outer_kernel(X: fx.Tensor, Y: fx.Tensor, Z: fx.Tensor, n: fx.Int64):
    i, j = fx.block_idx.x * 64 + fx.thread_idx.x, fx.block_idx.y
    if i < n:
        Z[j, i] = Y[j] * X[i]


@fly.jit
def outer(X: fx.Tensor, Y: fx.Tensor):
    n, m = X.shape[0], Y.shape[0]
    Z = fx.empty((m, n), fx.Float32)
    outer_kernel(X, Y, Z, n).launch(grid=(fx.ceildiv(n, 64), m), block=64)
    return Z, n * m


@fly.jit
def same(X: fx.Tensor[fx.Float32, "n"]):
    scale_kernel(X, X, X.shape[0], 1.0).launch(grid=1, block=64)
    return X
"""


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    import fly.torch

    path: Path = tmp_path_factory.mktemp("operators") / "program.py"
    path.write_text(PROGRAM)
    made = load_file(str(path))
    x = torch.zeros(3)

    def backward(context, gradient):
        return scaled(gradient, context.factor), None

    def setup(ctx, inputs, output):
        ctx.factor = inputs[1]

    scaled = fly.torch.register(made.scaled, backward=backward, setup_context=setup)
    to = fly.torch.register(made.scale_to, "flytest::scale_to")
    outer = fly.torch.register(made.outer, example=(x, x))
    return made, scaled, to, outer


def test_results(operators):
    _, scaled, to, outer = operators
    x, y = torch.arange(100.0), torch.zeros(100)
    assert torch.equal(scaled(x, 3.0), 3 * x)
    assert torch.equal(torch.ops.fly.scaled(x), 2 * x)
    assert to(x, y, 4.0) is None
    assert torch.equal(y, 4 * x)
    z, size = outer(x, torch.arange(7.0))
    assert torch.equal(z, torch.outer(torch.arange(7.0), x))
    assert size == 700


def test_opcheck(operators):
    _, scaled, to, outer = operators
    x = torch.randn(33)
    for inputs in ((x, 2.0), (x.clone().requires_grad_(), 0.5)):
        torch.library.opcheck(scaled, inputs)
    torch.library.opcheck(to, (x, torch.zeros(33), 2.0))
    torch.library.opcheck(outer, (x, torch.randn(5)))


def test_compile(operators):
    _, scaled, to, outer = operators

    @torch.compile(backend="aot_eager", fullgraph=True, dynamic=True)
    def f(x, y):
        out = torch.empty_like(x)
        to(scaled(x, 3.0) + 1, out, 2.0)
        z, size = outer(out, y)
        return z.sum(1) + size

    for n, m in ((10, 3), (77, 5), (128, 2)):
        x, y = torch.randn(n), torch.randn(m)
        expected = torch.outer(y, (3 * x + 1) * 2).sum(1) + n * m
        torch.testing.assert_close(f(x, y), expected)


def test_gradients(operators):
    import fly.torch

    made, scaled, _, _ = operators

    def backward(context, gradient):
        return 2 * gradient * context.factor, None

    def setup(ctx, inputs, output):
        ctx.factor = inputs[1]

    other = fly.torch.register(
        made.scaled, "flytest::other", backward=backward, setup_context=setup
    )
    none = fly.torch.register(made.scaled, "flytest::none")
    for operator, wanted in ((scaled, 3.0), (other, 6.0)):
        x = torch.arange(5.0, requires_grad=True)
        operator(x, 3.0).sum().backward()
        assert torch.equal(x.grad, torch.full((5,), wanted))
    with pytest.raises(RuntimeError, match=r"does not require grad|no autograd formula"):
        none(torch.arange(5.0, requires_grad=True), 3.0).sum().backward()


def test_what_can_be_no_operator(operators):
    import fly.torch

    made = operators[0]
    with pytest.raises(UsageError, match="not <function"):
        fly.torch.register(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="returns its parameter X: an operator's results are new"):
        fly.torch.register(made.same, "flytest::same")


SCHEMAS = """
import fly
import fly.expr as fx


@fly.kernel
def fill(X: fx.Tensor, n: fx.Int64, a: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        X[i] = a


@fly.jit
def every(
    X: fx.Tensor[fx.Float32, "n"],
    Y: fx.Tensor,
    a: fx.Float32,
    k: fx.Int32,
    flag: fx.Boolean,
    b: fx.Float32 = 1.5,
    m: fx.Int64 = 7,
    on: fx.Boolean = True,
    count: fx.Constexpr = 3,
    scale: fx.Constexpr = 0.5,
    word: fx.Constexpr = "x",
    is_on: fx.Constexpr = False,
    plain=4,
    stream: fx.Stream = None,
):
    fill(X, X.shape[0], a).launch(grid=1, block=64)


@fly.jit
def untyped(X, n, a):
    fill(X, n, a).launch(grid=1, block=64)


@fly.jit
def constants(X: fx.Tensor[fx.Float32, "n"], a: fx.Float32, k: fx.Constexpr):
    fill(X, k, a).launch(grid=1, block=64)


@fly.jit
def nested(X: fx.Tensor[fx.Float32, "n"], more: fx.Constexpr = 2):
    Y, Z = fx.empty_like(X), fx.empty_like(X)
    fill(Y, X.shape[0], 1.0).launch(grid=1, block=64)
    fill(Z, X.shape[0], 2.0).launch(grid=1, block=64)
    return Y, (X.shape[0] * more, Z)


@fly.jit
def single(X: fx.Tensor[fx.Float32, "n"]):
    Y = fx.empty_like(X)
    fill(Y, X.shape[0], 1.0).launch(grid=1, block=64)
    return (Y,)


@fly.jit
def halves(X: fx.Tensor[fx.Float32, "n"]):
    fill(X, X.shape[0], 1.0).launch(grid=1, block=64)
    return fx.empty((X.shape[0], 2), fx.Float16)


@fly.jit
def sized(X: fx.Tensor[fx.Float32, "n"]):
    fill(X, X.shape[0], 1.0).launch(grid=1, block=64)
    return X.shape[0] + 1


@fly.jit
def listed(X: fx.Tensor[fx.Float32, "n"], sizes: fx.Constexpr = (1, 2)):
    fill(X, sizes[0], 1.0).launch(grid=1, block=64)
"""


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    path: Path = tmp_path_factory.mktemp("schemas") / "program.py"
    path.write_text(SCHEMAS)
    return load_file(str(path))


@pytest.mark.parametrize(
    ("name", "example", "schema"),
    [
        (
            "every",
            (torch.zeros(5), torch.zeros(5), 1.0, 1, True),
            "(Tensor(a0!) X, Tensor Y, float a, SymInt k, bool flag, float b=1.5, SymInt m=7,"
            ' bool on=True, int count=3, float scale=0.5, str word="x", bool is_on=False,'
            " int plain=4) -> ()",
        ),
        ("untyped", (torch.zeros(5), 5, 1.0), "(Tensor(a0!) X, SymInt n, float a) -> ()"),
        ("constants", (torch.zeros(5), 1.0, 3), "(Tensor(a0!) X, float a, int k) -> ()"),
        ("nested", (), "(Tensor X, int more=2) -> (Tensor, SymInt, Tensor)"),
        ("single", (), "(Tensor X) -> Tensor"),
        ("sized", (), "(Tensor(a0!) X) -> SymInt"),
    ],
)
def test_schemas(schemas, name, example, schema):
    import fly.torch

    fly.torch.register(getattr(schemas, name), f"flyschema::{name}", example=example)
    assert str(getattr(torch.ops.flyschema, name).default._schema) == f"flyschema::{name}{schema}"


def test_names_of_operators(operators):
    import fly.torch

    made, scaled, _, _ = operators
    assert scaled._qualname == "fly::scaled"
    for name, qualified in (("twice", "fly::twice"), ("flytest::twice", "flytest::twice")):
        assert fly.torch.register(made.scaled, name)._qualname == qualified
    with pytest.raises(UsageError) as caught:
        fly.torch.register(made.scaled, "two words")
    assert caught.value.message == "'fly::two words' can't be the name of an operator"


def test_a_default_that_no_schema_has(schemas):
    import fly.torch

    with pytest.raises(UsageError) as caught:
        fly.torch.register(schemas.listed, "flyschema::listed")
    assert caught.value.message == "sizes=(1, 2): operators have no such argument"


def test_numbers_that_stand_for_symbolic_ones():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    shapes = ShapeEnv()
    assert operators_module._plain(shapes.create_unbacked_symint()) == 1
    made = operators_module._plain(shapes.create_unbacked_symfloat())
    assert (made, type(made)) == (1.0, float)
    assert [operators_module._plain(one) for one in (3, 2.5, None)] == [3, 2.5, None]


def test_nested_results_are_flat(schemas):
    import fly.torch

    nested = fly.torch.register(schemas.nested, "flytest::nested")
    x = torch.zeros(5)
    y, size, z = nested(x)
    assert torch.equal(y, torch.ones(5))
    assert torch.equal(z, torch.full((5,), 2.0))
    assert size == 10
    assert nested(x, 3)[1] == 15
    meta = torch.library.opcheck(nested, (x, 3))
    assert set(meta.values()) == {"SUCCESS"}


def test_fake_results_have_the_layouts_of_real_ones(operators, schemas):
    """Of every element type, of transposed tensors, on the device of the arguments."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    import fly.torch

    _, scaled, to, outer = operators
    single = fly.torch.register(schemas.single, "flytest::single")
    halves = fly.torch.register(schemas.halves, "flytest::halves")
    with FakeTensorMode():
        x, y = torch.empty(7), torch.empty(3)
        made = scaled(x, 2.0)
        assert (made.shape, made.dtype, made.device) == (x.shape, x.dtype, x.device)
        z, size = outer(x, y)
        assert (tuple(z.shape), z.stride(), size) == ((3, 7), (7, 1), 21)
        assert to(x, torch.empty(7), 2.0) is None
        assert single(x).shape == x.shape
        pairs = halves(x)
        assert (tuple(pairs.shape), pairs.stride(), pairs.dtype) == ((7, 2), (2, 1), torch.float16)
    assert torch.equal(single(torch.zeros(5)), torch.ones(5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("way", ["plain", "transposed", "strided", "empty"])
def test_arrays_that_stand_in_for_fake_tensors(dtype, way):
    """They have a tensor's type, rank and contiguity."""
    from fly.call import arguments
    from fly.call.arrays import views as arrays
    from fly.torch.operators import _stand_in

    tensor = torch.zeros((4, 6, 8), dtype=dtype)
    if way == "transposed":
        tensor = tensor.permute(2, 0, 1)
    elif way == "strided":
        tensor = tensor[:, ::2]
    elif way == "empty":
        tensor = torch.zeros((), dtype=dtype)
    array = _stand_in(tensor)
    assert array.data.ndim == tensor.dim()
    assert array.data.flags.c_contiguous == tensor.is_contiguous()
    order = sorted(range(tensor.dim()), key=lambda at: -tensor.stride(at))
    assert sorted(range(tensor.dim()), key=lambda at: -array.data.strides[at]) == order
    none = inspect.Parameter.empty
    assert arguments.type_of(array, none) == arguments.type_of(arrays.view(tensor, "x"), none)

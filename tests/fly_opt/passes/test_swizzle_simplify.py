"""fly-int-swizzle-simplify computes what it was given, and takes out what it may.

Random sums with swizzles are executed before and after the pass, modulo 2³² as arith does.
"""

from fly_dialect import dialect
from fly_dialect.bindings import ir
from fly_opt.ir.builder import operations
from fly_opt.passes.layout.swizzle_simplify import IntSwizzleSimplify
from hypothesis import given, settings
from hypothesis import strategies as st

CONTEXT = dialect.load(ir.Context())
WORD = 2**32
COMPUTE = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.ori": lambda a, b: a | b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrui": lambda a, b: a >> b,
}


def execute(module, arguments: tuple[int, ...]) -> int:
    """What the only function returns, unsigned."""
    found = operations(module.operation)
    values = dict(zip(found[0].regions[0].blocks[0].arguments, arguments, strict=True))
    for op in found[1:]:
        operands = [values[operand] for operand in op.operands]
        if op.name == "func.return":
            return operands[0]
        if op.name == "arith.constant":
            values[op.results[0]] = op.attributes["value"].value % WORD
        else:
            values[op.results[0]] = COMPUTE[op.name](*operands) % WORD
    raise AssertionError("the function returns")


# A program is a list of lines; each makes a value of earlier ones (by their numbers, modulo how
# many there are), of constants, or the swizzle of one.
line = st.one_of(
    st.tuples(
        st.sampled_from(["addi", "addi", "addi", "subi", "muli", "ori", "xori"]),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    st.tuples(
        st.just("constant"),
        st.sampled_from([0, 1, 3, 8, 64, 96, 128, 256, 512, 1024, -64, 2**31 - 1]),
    ),
    st.tuples(st.sampled_from(["shli", "shrui"]), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(
        st.just("swizzle"),
        st.integers(0, 9),
        st.integers(1, 3),
        st.integers(0, 4),
        st.integers(0, 5),
    ),
)


def write(program) -> str:
    text, values = [], ["%x", "%y"]

    def constant(number: int) -> str:
        name = f"%c{len(text)}"
        text.append(f"{name} = arith.constant {number} : i32")
        return name

    def binary(op: str, lhs: str, rhs: str) -> str:
        name = f"%v{len(text)}"
        text.append(f"{name} = arith.{op} {lhs}, {rhs} : i32")
        return name

    for op, *rest in program:
        picked = values[rest[0] % len(values)]
        if op == "constant":
            values.append(constant(rest[0]))
        elif op in ("shli", "shrui"):
            values.append(binary(op, picked, constant(rest[1])))
        elif op == "swizzle":
            mask, base, shift = rest[1:]
            chosen = binary("andi", picked, constant(((1 << mask) - 1) << (base + shift)))
            values.append(binary("xori", picked, binary("shrui", chosen, constant(shift))))
        else:
            values.append(binary(op, picked, values[rest[1] % len(values)]))
    total = values[2]
    for value in values[3:]:
        total = binary("addi", total, value)
    body = "\n".join(text)
    return f"func.func @f(%x: i32, %y: i32) -> i32 {{\n{body}\nreturn {total} : i32\n}}"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(line, min_size=2, max_size=10),
    st.lists(st.tuples(st.integers(0, WORD - 1), st.integers(0, 4096)), min_size=1, max_size=4),
)
def test_the_same_is_computed(program, inputs):
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.parse(write(program))
        before = [execute(module, arguments) for arguments in inputs]
        IntSwizzleSimplify().run(module.operation)
        assert module.operation.verify()
        assert [execute(module, arguments) for arguments in inputs] == before

"""Programs that tests change: one with every kind of step, one of straight lines."""

from fly_host.program import (
    Allocate,
    Assigned,
    Branch,
    Buffer,
    Call,
    Carried,
    CarriedTensor,
    Check,
    Chosen,
    ChosenTensor,
    Free,
    Launch,
    Loop,
    Operand,
    Program,
    Scalar,
    Stream,
    Tensor,
    View,
    Word,
)

PARAMETERS = (
    Tensor("A", "f32", ("n", 4), (None, 1), "r"),
    Tensor("B", "bf16", (None,), (1,), "w", contiguous=True, multiples=(16, 1)),
    Scalar("n", "i32"),
    Scalar("alpha", "f32", 0.5),
)
EXPRESSIONS = (
    ("extent", "A", 0),
    ("const", 256),
    ("ceildiv", 0, 1),
    ("stride", "A", 1),
    ("scalar", "n"),
    ("lt", 0, 4),
    ("select", 5, 0, 4),
)
LAUNCH = Launch(
    "kernel",
    (2, 1, 1),
    (1, 1, 1),
    0,
    (
        (Word("pointer", "A"), Word("integer", expression=0, size=8)),
        (Word("scalar", "alpha", size=4),),
    ),
)
STRAIGHT = Program("vector_add", "gfx942", PARAMETERS, EXPRESSIONS, (LAUNCH,))

# A loop that swaps two tensors, a branch, a library call, checks and views.
EVERY = Program(
    entry="every",
    target="gfx942",
    parameters=(
        Tensor("A", "f32", ("n",), (1,)),
        Scalar("n", "i32", 3),
        Stream("stream"),
    ),
    expressions=(
        ("extent", "A", 0),  # 0
        ("const", 0),
        ("const", 1),
        ("scalar", "n"),
        ("lt", 1, 3),
        ("variable", 0),  # 5
        ("lt", 5, 3),
        ("add", 5, 2),
        ("variable", 1),
        ("variable", 2),
        ("extent", "A_1", 0),  # 10
    ),
    steps=(
        Check(4, ("n is ", 3, ", and has to be positive")),
        Allocate("T"),
        Loop(
            carried=(Carried(0, 1, 7, 1),),
            tensors=(
                CarriedTensor("A_1", "A", "T_1", "A_2"),
                CarriedTensor("T_1", "T", "A_1", "T_2"),
            ),
            condition=6,
            body=(
                Launch("k", (10, 2, 2), (2, 2, 2), 1, ((Word("pointer", "T_1", 2),),), "stream"),
            ),
        ),
        Call(
            "torch.matmul",
            (
                Operand("tensor", "A_2"),
                Operand("view", View("T_2", (0, 2), (2, 1), 8)),
                Operand("integer", 8),
                Operand("scalar", "n"),
                Operand("constant", (None, True, 1.5, "x", (2,))),
            ),
            (("out", Operand("tensor", "A")),),
            ("M",),
        ),
        Branch(
            4,
            then=(Allocate("U"), Launch("k", (2, 2, 2), (2, 2, 2), 1, ((Word("pointer", "U"),),))),
            otherwise=(),
            integers=(Chosen(2, 0, 1),),
            tensors=(ChosenTensor("R", "U", "M"),),
        ),
        Free("T"),
    ),
    tensors=(
        Buffer("T", "f32", (0,), (2,), 0),
        Assigned("A_1", "f32", 1),
        Assigned("T_1", "f32", 1),
        Assigned("A_2", "f32", 1),
        Assigned("T_2", "f32", 1),
        Buffer("M", "f32", (0,), (2,), 0),
        Buffer("U", "f32", (0,), (2,), 0),
        Assigned("R", "f32", 1),
    ),
    results=(Operand("tensor", "R"), (Operand("integer", 9), None, Operand("tensor", "A"))),
    result_names=("R", "result1", "A"),
)

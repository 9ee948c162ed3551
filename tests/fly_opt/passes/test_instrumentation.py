"""What passes that instrument kernels look at: accesses, and the memory of pointers."""

from __future__ import annotations

import pytest
from fly_dialect.bindings import ir
from fly_dialect.dialect import new_context
from fly_image.reports import SITES, Sites
from fly_opt.backends.amd.lowering import ROCM
from fly_opt.backends.nvidia.lowering import CUDA
from fly_opt.ir.builder import operations
from fly_opt.passes.instrumentation.accesses import accesses
from fly_opt.passes.instrumentation.building import gpu_modules, kernels
from fly_opt.passes.instrumentation.provenance import root, roots
from fly_opt.passes.instrumentation.reports import Reports

FRAME = """
module {{
  gpu.module @kernels {{
    llvm.mlir.global internal @tile() {{addr_space = 3 : i32}} : !llvm.array<64 x i8>
    llvm.mlir.global internal @other() {{addr_space = 3 : i32}} : !llvm.array<64 x i8>
    gpu.func @k(%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %n: i32, %c: i1, %x: f32) kernel {{
      %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
      {body}
      gpu.return
    }}
  }}
}}
"""


@pytest.fixture
def kernel():
    """Parses the body of a kernel."""
    with new_context() as context:
        context.load_all_available_dialects()
        kept = []

        def parse(body: str) -> ir.Operation:
            kept.append(ir.Module.parse(FRAME.format(body=body)))
            (module,) = gpu_modules(kept[-1].operation)
            return kernels(module)[0]

        yield parse


def stores(kernel) -> list[ir.Operation]:
    return [op for op in operations(kernel) if op.name == "llvm.store"]


def names(kernel) -> list[list[str] | None]:
    """For each store what its pointer is into: the numbers of arguments, names of variables."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    found = []
    for store in stores(kernel):
        those = roots(store.operands[1])
        if those is None:
            found.append(None)
            continue
        words = []
        for one in those:
            if isinstance(one, ir.BlockArgument):
                words.append(str(arguments.index(one)))
            else:
                words.append(str(one.owner.operation.attributes["global_name"])[1:])
        found.append(sorted(words))
    return found


STORE = "llvm.store %x, {} : f32, !llvm.ptr<{}>"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (STORE.format("%A", 1), ["0"]),
        (
            "%p = llvm.getelementptr %B[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32\n"
            "%q = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\n"
            + STORE.format("%q", 1),
            ["1"],
        ),
        ("%p = llvm.select %c, %A, %B : i1, !llvm.ptr<1>\n" + STORE.format("%p", 1), ["0", "1"]),
        ("%p = llvm.select %c, %A, %A : i1, !llvm.ptr<1>\n" + STORE.format("%p", 1), ["0"]),
        (
            "%p = scf.if %c -> !llvm.ptr<1> { scf.yield %A : !llvm.ptr<1> }"
            " else { scf.yield %B : !llvm.ptr<1> }\n" + STORE.format("%p", 1),
            ["0", "1"],
        ),
        (
            "%lo = arith.constant 0 : index\n%step = arith.constant 1 : index\n"
            "%p = scf.for %i = %lo to %step step %step iter_args(%q = %A) -> (!llvm.ptr<1>) {\n"
            "  %r = llvm.getelementptr %q[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\n"
            f"  {STORE.format('%q', 1)}\n  scf.yield %r : !llvm.ptr<1>\n}}\n",
            ["0"],
        ),
        (
            "%p = scf.while (%q = %B) : (!llvm.ptr<1>) -> !llvm.ptr<1> {\n"
            "  scf.condition(%c) %q : !llvm.ptr<1>\n} do {\n^bb0(%r: !llvm.ptr<1>):\n"
            f"  {STORE.format('%r', 1)}\n  scf.yield %r : !llvm.ptr<1>\n}}",
            ["1"],
        ),
        (
            "%i = llvm.ptrtoint %tile : !llvm.ptr<3> to i64\n%m = arith.constant 12 : i64\n"
            "%j = arith.shrui %i, %m : i64\n%l = arith.xori %i, %j : i64\n"
            "%p = llvm.inttoptr %l : i64 to !llvm.ptr<3>\n" + STORE.format("%p", 3),
            ["tile"],
        ),
        (
            "%again = llvm.mlir.addressof @tile : !llvm.ptr<3>\n"
            "%p = llvm.select %c, %tile, %again : i1, !llvm.ptr<3>\n" + STORE.format("%p", 3),
            ["tile"],
        ),
        (
            "%u = llvm.mlir.undef : !llvm.struct<(ptr<1>, i32)>\n"
            "%s = llvm.insertvalue %A, %u[0] : !llvm.struct<(ptr<1>, i32)>\n"
            "%t = llvm.insertvalue %n, %s[1] : !llvm.struct<(ptr<1>, i32)>\n"
            "%p = llvm.extractvalue %t[0] : !llvm.struct<(ptr<1>, i32)>\n" + STORE.format("%p", 1),
            ["0"],
        ),
        ("%p = llvm.load %A : !llvm.ptr<1> -> !llvm.ptr<1>\n" + STORE.format("%p", 1), None),
        (
            "%i = llvm.ptrtoint %A : !llvm.ptr<1> to i64\n"
            "%j = llvm.ptrtoint %B : !llvm.ptr<1> to i64\n%l = arith.addi %i, %j : i64\n"
            "%p = llvm.inttoptr %l : i64 to !llvm.ptr<1>\n" + STORE.format("%p", 1),
            None,
        ),
        (
            "%i = arith.extui %n : i32 to i64\n%p = llvm.inttoptr %i : i64 to !llvm.ptr<1>\n"
            + STORE.format("%p", 1),
            None,
        ),
    ],
)
def test_what_a_pointer_is_into(kernel, body, wanted):
    assert names(kernel(body)) == [wanted]


def test_one_root(kernel):
    both = kernel("%p = llvm.select %c, %A, %B : i1, !llvm.ptr<1>\n" + STORE.format("%p", 1))
    assert root(stores(both)[0].operands[1]) is None
    assert root(stores(kernel(STORE.format("%B", 1)))[0].operands[1]) is not None


def listed(kernel, lowering) -> list[tuple]:
    return [
        (one.kind, one.nbytes, one.bits, one.space, len(one.offsets), one.buffer, one.per_lane)
        for op in operations(kernel)
        for one in accesses(op, lowering)
    ]


@pytest.mark.parametrize("lowering", [ROCM, CUDA])
def test_accesses_of_llvm(kernel, lowering):
    found = kernel(
        "%v = llvm.load %A : !llvm.ptr<1> -> vector<4xf16>\n"
        "llvm.store %v, %tile : vector<4xf16>, !llvm.ptr<3>\n"
        "%o = llvm.atomicrmw add %B, %n monotonic : !llvm.ptr<1>, i32\n"
        "%e = llvm.cmpxchg %B, %n, %n monotonic monotonic : !llvm.ptr<1>, i32\n"
        "%b = llvm.load %A : !llvm.ptr<1> -> i1\n"
        "%p = llvm.load %A : !llvm.ptr<1> -> !llvm.ptr<1>"
    )
    assert listed(found, lowering) == [
        ("load", 8, 16, 1, 0, False, False),
        ("store", 8, 16, 3, 0, False, False),
        ("atomic update", 4, 32, 1, 0, False, False),
        ("atomic update", 4, 32, 1, 0, False, False),
        ("load", 1, 1, 1, 0, False, False),
    ]


RESOURCE = (
    "%z = arith.constant 0 : i16\n%size = arith.constant 64 : i64\n%f = arith.constant 0 : i32\n"
    "%r = rocdl.make.buffer.rsrc %A, %z, %size, %f : !llvm.ptr<1> to !llvm.ptr<8>\n"
)


def test_accesses_through_a_descriptor(kernel):
    found = kernel(
        RESOURCE + "%v = rocdl.raw.ptr.buffer.load %r, %n, %f, 0 : vector<4xi32>\n"
        "rocdl.raw.ptr.buffer.store %v, %r, %n, %f, 0 : vector<4xi32>\n"
        '%o = llvm.call_intrinsic "llvm.amdgcn.raw.ptr.buffer.atomic.add"(%n, %r, %n, %f, %f)'
        " : (i32, !llvm.ptr<8>, i32, i32, i32) -> i32"
    )
    assert listed(found, ROCM) == [
        ("load", 16, 32, 1, 2, True, False),
        ("store", 16, 32, 1, 2, True, False),
        ("atomic update", 4, 32, 1, 2, True, False),
    ]
    every = [one for op in operations(found) for one in accesses(op, ROCM)]
    assert {root(one.pointer) for one in every} == {found.regions[0].blocks[0].arguments[0]}


def test_copies_straight_to_shared_memory(kernel):
    found = kernel(
        RESOURCE + "%four = arith.constant 4 : i32\n"
        "rocdl.raw.ptr.buffer.load.lds %r, %tile, %four, %n, %f, %f, 0\n"
    )
    assert listed(found, ROCM) == [
        ("load", 4, 32, 1, 3, True, False),
        ("store", 4, 32, 3, 0, False, True),
    ]


def test_reports_of_two_passes_are_in_one_table(kernel):
    made = kernel(STORE.format("%A", 1))
    module = made.parent.operation
    store = stores(made)[0]
    numbers = []
    for text in ("first", "second", "first"):
        reports = Reports(module)
        numbers.append(reports.site("k", text, store.location, "store"))
        reports.clear_before_launch("shadow")
        reports.emit(ir.InsertionPoint(store), store.location, numbers[-1], [])
        reports.finish()
    assert numbers == [0, 1, 0]
    tables = [
        one
        for one in operations(module)
        if one.name == "llvm.mlir.global" and str(one.attributes["sym_name"]) == f'"{SITES}"'
    ]
    (table,) = tables
    found = Sites.parse(ir.StringAttr(table.attributes["value"]).value.encode())
    assert [one.text for one in found.sites] == ["first", "second"]
    assert found.clear == ("shadow",)
    functions = [one for one in operations(module) if one.name == "llvm.func"]
    assert len(functions) == 1
    assert module.verify()

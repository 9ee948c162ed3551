"""Builds what a kernel needs to report to the host: see `fly_image.reports`.

    reports = Reports(module)                        a gpu.module, which may already have reports
    number = reports.site("k", "{0} is negative", op.location)
    reports.emit(ip, op.location, number, [value])
    reports.finish()

The reports are built not later than at the slot opt.before-gpu-lowering. A call of `fly_report`
writes a record: the site, the block, the thread, and up to VALUES integers. Passes of several
plugins may add sites to one module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_dialect.bindings import ir
from fly_dialect.dialect import file_position
from fly_image.reports import FAULTS, HEADER, PRINTS, SITES, Channel, Site, Sites

from fly_opt.passes.instrumentation.building import add_functions, call, symbol_of

if TYPE_CHECKING:
    from collections.abc import Iterable

FUNCTION = "fly_report"
FUNCTIONS = {FAULTS: FUNCTION, PRINTS: "fly_print"}
SPACE = 1  # global memory

_IDS = "".join(
    f"""
  %{name}.{axis}.index = gpu.{name}_id {axis}
  %{name}.{axis} = arith.index_cast %{name}.{axis}.index : index to i32
  %{name}.{axis}.at = llvm.getelementptr %record[{place}]
    : (!llvm.ptr<{SPACE}>) -> !llvm.ptr<{SPACE}>, i32
  llvm.store %{name}.{axis}, %{name}.{axis}.at {{alignment = 4 : i64}} : i32, !llvm.ptr<{SPACE}>"""
    for name, axis, place in (
        (name, axis, 1 + 3 * n + m)
        for n, name in enumerate(("block", "thread"))
        for m, axis in enumerate("xyz")
    )
)


def _function(channel: Channel) -> str:
    """The function that writes a record. It is called where something is wrong, so the caller's
    code stays small."""
    values = "".join(
        f"""
  %value.{n} = llvm.getelementptr %record[{4 + n}]
    : (!llvm.ptr<{SPACE}>) -> !llvm.ptr<{SPACE}>, i64
  llvm.store %v{n}, %value.{n} {{alignment = 8 : i64}} : i64, !llvm.ptr<{SPACE}>"""
        for n in range(channel.values)
    )
    given = ", ".join(f"%v{n}: i64" for n in range(channel.values))
    return f"""
llvm.mlir.global external @{channel.buffer}() {{addr_space = {SPACE} : i32}} : i32
llvm.func internal @{FUNCTIONS[channel]}(%site: i32, {given})
    attributes {{no_inline}} {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %most = llvm.mlir.constant({channel.capacity} : i32) : i32
  %size = llvm.mlir.constant({channel.record.size} : i64) : i64
  %buffer = llvm.mlir.addressof @{channel.buffer} : !llvm.ptr<{SPACE}>
  %number = llvm.atomicrmw add %buffer, %one monotonic : !llvm.ptr<{SPACE}>, i32
  %fits = llvm.icmp "ult" %number, %most : i32
  llvm.cond_br %fits, ^store, ^end
^store:
  %records = llvm.getelementptr %buffer[{HEADER.size}]
    : (!llvm.ptr<{SPACE}>) -> !llvm.ptr<{SPACE}>, i8
  %wide = llvm.zext %number : i32 to i64
  %offset = llvm.mul %wide, %size : i64
  %record = llvm.getelementptr %records[%offset]
    : (!llvm.ptr<{SPACE}>, i64) -> !llvm.ptr<{SPACE}>, i8
  llvm.store %site, %record {{alignment = 4 : i64}} : i32, !llvm.ptr<{SPACE}>{_IDS}{values}
  llvm.br ^end
^end:
  llvm.return
}}
"""


class Reports:
    """The reports of the kernels of a gpu.module."""

    def __init__(self, module: ir.Operation):
        self._module, self._body = module, module.regions[0].blocks[0]
        self._table = next((one for one in self._globals() if symbol_of(one) == SITES), None)
        found = Sites()
        if self._table is not None:
            text = ir.StringAttr(self._table.attributes["value"]).value
            found = Sites.parse(text.encode())
        self._before, self._clear = found, list(found.clear)
        self._used: dict[Channel, None] = {}
        self._sites = {site: number for number, site in enumerate(found.sites)}

    def _globals(self) -> Iterable[ir.Operation]:
        operations = (one.operation for one in self._body)
        return [one for one in operations if one.name == "llvm.mlir.global"]

    def site(self, kernel: str, text: str, location: ir.Location, what: str = "") -> int:
        """Adds a site at a location; returns its number. Of equal ones there is one."""
        file, line, column = file_position(location) or ("", 0, 0)
        site = Site(kernel, text, file, line, column, what)
        return self._sites.setdefault(site, len(self._sites))

    def emit(
        self,
        at: ir.InsertionPoint,
        loc: ir.Location,
        number: int,
        values: Sequence[ir.Value],
        channel: Channel = FAULTS,
    ) -> None:
        """Writes a report at an insertion point, with values of type i64."""
        self._used[channel] = None
        i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)

        def constant(kind: ir.Type, value: int) -> ir.Value:
            attributes = {"value": ir.IntegerAttr.get(kind, value)}
            return ir.Operation.create(
                "llvm.mlir.constant", [kind], [], attributes, loc=loc, ip=at
            ).results[0]

        given = [constant(i32, number), *values]
        given += [constant(i64, 0) for _ in range(channel.values - len(values))]
        call(at, loc, FUNCTIONS[channel], given)

    def clear_before_launch(self, name: str) -> None:
        """The launcher sets the module's variable `name` to zero before each launch."""
        if name not in self._clear:
            self._clear.append(name)

    def finish(self) -> None:
        """Writes the variables and the function into the module, if it has reports."""
        made = Sites(tuple(self._sites), tuple(self._clear))
        if made == self._before:
            return
        if self._table is not None:
            self._table.erase()
        there = {symbol_of(one) for one in self._globals()}
        if not self._used and FAULTS.buffer not in there:
            self._used[FAULTS] = None
        for channel in self._used:
            if channel.buffer not in there:
                variable(self._body, channel.buffer, channel.nbytes)
                add_functions(self._module, _function(channel), FUNCTIONS[channel])
        text = made.text().encode() + b"\0"
        kind = ir.Type.parse(f"!llvm.array<{len(text)} x i8>")
        value = ir.StringAttr.get(text.decode())
        _global(self._body, SITES, kind, {"value": value, "constant": ir.UnitAttr.get()})


def variable(body: ir.Block, name: str, nbytes: int) -> None:
    """Adds a variable of global memory to a module, zero at first, that the host can find."""
    kind = ir.Type.parse(f"!llvm.array<{nbytes} x i8>")
    made = _global(body, name, kind, {})
    block = made.regions[0].blocks.append()
    with ir.InsertionPoint(block), made.location:
        zero = ir.Operation.create("llvm.mlir.zero", [kind]).results[0]
        ir.Operation.create("llvm.return", [], [zero])


def _global(
    body: ir.Block, name: str, kind: ir.Type, more: dict[str, ir.Attribute]
) -> ir.Operation:
    """Protected: the host sees it, and code reaches it without a table of addresses."""
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "global_type": ir.TypeAttr.get(kind),
        "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
        "visibility_": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2),
        "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), SPACE),
        "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 16),
        **more,
    }
    return ir.Operation.create(
        "llvm.mlir.global",
        attributes=attributes,
        regions=1,
        loc=ir.Location.unknown(),
        ip=ir.InsertionPoint.at_block_begin(body),
    )

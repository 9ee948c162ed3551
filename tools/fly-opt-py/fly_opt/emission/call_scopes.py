"""Debug scopes for the calls of helpers that a location names.

`ensure-debug-info-scope-on-llvm-func` gives a scope to the innermost place of a CallSiteLoc only.
MLIR's translation then keeps the outermost call and drops those in between, which have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_dialect.dialect import file_position

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


def complete(module: ir.Module) -> None:
    """Gives the calls in the locations of functions with debug scopes theirs."""
    from fly_dialect.bindings import ir

    for child in module.body:
        function = child.operation
        if function.name == "llvm.func" and isinstance(function.location, ir.FusedLoc):
            _Scopes(function).complete()


class _Scopes:
    """The debug scopes of a function, by the files of the places that they are for."""

    def __init__(self, function: ir.Operation):
        self.function = function
        self.by_file: dict[str, ir.Attribute] = {}
        self.made: dict[str, ir.Location] = {}

    def complete(self) -> None:
        from fly_dialect.bindings import ir

        nested: list[tuple[ir.Operation, ir.CallSiteLoc]] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            found = op.location
            if isinstance(found, ir.CallSiteLoc):
                self.note(found.callee)
                if isinstance(found.caller, ir.CallSiteLoc):
                    nested.append((op, found))
            else:
                self.note(found)
            return ir.WalkResult.ADVANCE

        self.function.walk(visit)
        for op, location in nested:
            text = str(location)
            if text not in self.made:
                caller = self.scoped(location.caller)
                self.made[text] = ir.Location.callsite(location.callee, [caller])
            op.location = self.made[text]

    def note(self, location: ir.Location) -> None:
        """Remembers a place's scope for other places in its file."""
        from fly_dialect.bindings import ir

        at = file_position(location)
        if at is not None and isinstance(location, ir.FusedLoc) and location.metadata is not None:
            self.by_file.setdefault(at[0], location.metadata)

    def scoped(self, location: ir.Location) -> ir.Location:
        """A call's location with the scopes of the places. A place in a file that the kernel has no
        op of is left out."""
        from fly_dialect.bindings import ir

        if not isinstance(location, ir.CallSiteLoc):
            return location
        caller, at = self.scoped(location.caller), file_position(location.callee)
        scope = self.by_file.get(at[0]) if at else None
        if scope is None:
            return caller
        return ir.Location.callsite(ir.Location.fused([location.callee], scope), [caller])

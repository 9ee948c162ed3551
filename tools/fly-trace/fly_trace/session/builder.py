"""Builds MLIR while a function is traced: one Builder per traced function.

Every op has the location of the user's expression; locations are created once per instruction and
cached. Types, constants and ids are created here. The callers decide which ops to build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fly_common.errors import FlyError
from fly_dialect import dialect as fly
from fly_dialect.bindings import ir
from fly_dialect.builders import building
from fly_dialect.extension import upstream

from fly_trace.control import objects
from fly_trace.control.calls.python_calls import PythonCalls
from fly_trace.control.carried.discarded import TracedAgain
from fly_trace.core import tracing
from fly_trace.session.raised import raised
from fly_trace.values.dtypes import DType
from fly_trace.values.functions import fast_math
from fly_trace.values.scalars import Scalar
from fly_trace.values.value_ranges import Interval

if TYPE_CHECKING:
    from fly_dialect.types import Spec

    from fly_trace.control.carried.in_place import Container
    from fly_trace.control.carried.named_values import Named
    from fly_trace.control.carried.weak_numbers import Weak
    from fly_trace.core.rules import Rules
    from fly_trace.core.target import Target
    from fly_trace.effects.snapshots import Snapshot, Variables
    from fly_trace.session.op_locations import Locations


class Builder:
    """`host` is true for the host function, false for a kernel. `target` is the trace's. `ip` is
    the insertion point. `region` numbers the dynamic region (a branch or a loop's body) that is
    being traced; 0 is the function itself."""

    def __init__(
        self,
        context: ir.Context,
        block: ir.Block,
        *,
        host: bool,
        locations: Locations,
        target: Target,
        frozen: Snapshot,
        rules: Rules | None = None,
    ):
        self.context = context
        self.target = target
        self.block = block
        self.ip = ir.InsertionPoint(block)
        self.host = host
        self.rules = rules  # of numbers; None for the language's own
        self.locations = locations
        self.region = 0
        self.regions = 0
        self.frozen = frozen
        self.exits = 0  # how many early exits under dynamic conditions were traced
        # Objects whose contents control flow carries, by id: all of them; those of the branch or
        # loop that is traced, which it may change; and those of the next one.
        self.carried: dict[int, Any] = {}
        self.in_place: dict[int, Any] = {}
        self.offered: dict[int, Any] = {}
        self.fields: dict[int, frozenset[str]] = {}  # the attributes of those that are carried
        # Containers with items that branches and loops assign to; those that functions change which
        # a branch or loop calls; and regions that were traced without them.
        self.assigned: dict[int, Any] = {}
        self.shared: dict[int, Container] = {}
        self.discarded: list[ir.Operation] = []
        self.allocations: list[ir.Operation] = []  # of shared memory, at the function's start
        # The op of the outermost region that an error has left so far, and the objects from before.
        self.failed: tuple[ir.Operation, Snapshot] | None = None
        self.unrolled = 0  # iterations of loops that could not become loops of the GPU
        self.traced_again = 0  # branches and loops that were
        self.weak: dict[ir.Value, Weak] = {}  # the Python numbers that loops carry
        # The copies of containers that loops carry, by id, each with the original and its number.
        self.copies: dict[int, tuple[Any, Any, int]] = {}
        self.entry: Any = None
        self.variables: Variables = {}  # of the running functions that have many
        self.calls: list[Any] = []
        outer = tracing.active()  # a kernel is traced within the host function
        self.python_calls = outer.python_calls if outer is not None else PythonCalls()
        self.generators: list[Any] = []  # weak references to those of rewritten functions
        self.ids: dict[str, Scalar] = {}
        self.scratch: dict[Any, Any] = {}  # the primitives' shared memory: see `gpu.scratch`
        self.rings: dict[int, Any] = {}  # what fills rings of buffers, by their ids
        self.arenas: list[Any] = []  # the allocators of dynamic shared memory
        self.statics: dict[Any, ir.Value] = {}  # static values of the fly dialect, by their types
        self.last_static: ir.Value | None = None
        self.intervals: dict[ir.Value, Interval] = {}  # of values whose ops don't say theirs
        self.known_block: tuple[int, int, int] | None = None  # a kernel's, where it is static
        self.known_cluster: tuple[int, int, int] = (1, 1, 1)  # a kernel's: blocks of a cluster
        self.call_kernel: Callable[..., Any] | None = None  # what calling one does in the host
        self.returned: Any = None  # what a host function returned last, and its names
        self.named: Named | None = None  # the variables of the expression that is evaluated
        self.fastmath: Any = None  # the flags of operations on floats, as an attribute
        self._types: dict[Any, Any] = {}  # by their texts, the fly dialect's by their specs
        self._attributes: dict[Any, Any] = {}
        self._inferred = building.Inferred()
        self._unloaded = set(upstream())  # dialects of backends, of which no op was built yet

    def type(self, text: str) -> Any:
        found = self._types.get(text)
        if found is None:
            found = self._types[text] = fly.type_of(text, self.context)
        return found

    def load(self, namespace: str) -> None:
        """Loads a backend's dialect, which must be there before its first op is built."""
        if namespace in self._unloaded:
            self._unloaded.remove(namespace)
            fly.load_upstream(self.context, (namespace,))

    def op(
        self,
        name: str,
        results: list[ir.Type],
        operands: list[ir.Value],
        attributes: Mapping[str, ir.Attribute] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        self.load(name.partition(".")[0])
        return ir.Operation.create(
            name,
            results,
            operands,
            attributes,
            regions=regions,
            loc=self.locations.here(),
            ip=self.ip,
        )

    def one(
        self,
        name: str,
        result: str,
        *operands: ir.Value,
        **attributes: ir.Attribute,
    ) -> ir.Value:
        """Builds an op with one result. `result` is the text of its type."""
        if self.fastmath is not None and fast_math.is_flagged(name):
            attributes.setdefault("fastmath", self.fastmath)
        return self.op(name, [self.type(result)], list(operands), attributes).results[0]

    def fly(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Builds an op of the fly dialect by its builder in `fly_dialect.builders.ops`."""
        with self.context:
            return function(*arguments, loc=self.locations.here(), ip=self.ip)

    def fly_op(
        self,
        name: str,
        operands: list[ir.Value],
        attributes: dict[str, Any],
        result: Any = None,
    ) -> Any:
        """Builds `fly.name`, with the result type `result` if it has been inferred. Attributes are
        integers, tuples of integers, or strings."""
        made = {key: self._plain(value) for key, value in attributes.items() if value is not None}
        where = self.locations.here()
        if result is not None:
            types = [self.fly_type(result)]
            return building.create(name, operands, types, made, where, self.ip).results[0]
        with self.context:
            if made:
                return building.build(name, operands, None, made, loc=where, ip=self.ip)
            return building.results_of(self._inferred.build(name, operands, where, self.ip))

    def fly_type(self, spec: Spec) -> ir.Type:
        """The `ir.Type` of `spec`, a type of the fly dialect."""
        found = self._types.get(spec)
        if found is None:
            found = self._types[spec] = fly.type_of(spec, self.context)
        return found

    def spec(self, value: ir.Value) -> Spec:
        """The spec of the type of a value of the fly dialect."""
        return fly.spec_of(value.type)

    def _plain(self, value: Any) -> ir.Attribute:
        if isinstance(value, tuple):
            return self.attribute(f"array<i32: {', '.join(map(str, value))}>")
        if isinstance(value, str):
            is_text = value.startswith("#")
            return self.attribute(value) if is_text else ir.StringAttr.get(value, self.context)
        if isinstance(value, ir.Type):
            return ir.TypeAttr.get(value)
        return self.integer(value, "i32")

    def integer(self, value: int, type_: str) -> ir.Attribute:
        """Creates an integer attribute."""
        key = (value, type_)
        found = self._attributes.get(key)
        if found is None:
            if type_ == "index":
                kind, bits = ir.IndexType.get(self.context), 64
            else:
                kind = ir.IntegerType(self.type(type_))
                bits = kind.width
            signed = value - (1 << bits) if bits > 1 and value >= 1 << (bits - 1) else value
            found = self._attributes[key] = ir.IntegerAttr.get(kind, signed)
        return found

    def constant(self, number: bool | int | float, dtype: DType) -> ir.Value:
        if dtype.is_float:
            kind = self.type(dtype.ir)
            attribute = ir.FloatAttr.get(kind, float(number), loc=self.locations.unknown)
        else:
            attribute = self.integer(int(number), dtype.ir)
        return self.one("arith.constant", dtype.ir, value=attribute)

    def splat(self, number: bool | int | float, dtype: DType, kind: str) -> ir.Value:
        """A constant vector of type `kind` with all elements equal to `number`."""
        if dtype.is_float:
            element = ir.FloatAttr.get(
                self.type(dtype.ir), float(number), loc=self.locations.unknown
            )
        else:
            element = self.integer(int(number), dtype.ir)
        value = ir.DenseElementsAttr.get_splat(self.type(kind), element)
        return self.one("arith.constant", kind, value=value)

    def index(self, number: int) -> ir.Value:
        return self.one("arith.constant", "index", value=self.integer(number, "index"))

    def ssa(self, scalar: Scalar) -> ir.Value:
        """The SSA value of a scalar. Materializes a typed constant."""
        if scalar.value is scalar.number:
            assert scalar.number is not None
            return self.constant(scalar.number, scalar.dtype)
        return scalar.value

    @contextmanager
    def inside(self, block: ir.Block, free: bool = False) -> Iterator[None]:
        """Sets the insertion point to the end of `block`, a new dynamic region. In a `free` one,
        objects from before it may be modified."""
        ip, region, frozen = self.ip, self.region, self.frozen
        in_place, offered = self.in_place, self.offered
        if not free:
            self.frozen = objects.before_region(self)
            self.in_place = offered
            for key, one in self.carried.items():
                if key not in offered:
                    self.frozen.renew(one)
            for one in self.assigned.values():
                # What the region around it has changed so far is not this one's change.
                if (entry := frozen.find(one)) is not None and entry.changed:
                    self.frozen.renew(one)
        self.offered = {}
        self.ip = ir.InsertionPoint(block)
        self.regions += 1
        self.region = self.regions
        try:
            yield
            if not free:
                objects.check_region(self.frozen)
        except TracedAgain as error:
            objects.restore_region(self)
            error.region = block.owner.operation
            raise
        except FlyError:
            self.failed = block.owner.operation, self.frozen
            raise
        except Exception as error:
            self.failed = block.owner.operation, self.frozen
            # The branch is not finished, so that no `except` outside of it can go on.
            raise raised(error) from error
        finally:
            self.ip, self.region, self.frozen = ip, region, frozen
            self.in_place, self.offered = in_place, offered

    @contextmanager
    def at_end(self, block: ir.Block) -> Iterator[None]:
        """Sets the insertion point to the end of `block`, in the current region."""
        ip = self.ip
        self.ip = ir.InsertionPoint(block)
        try:
            yield
        finally:
            self.ip = ip

    def at_start(self, make: Callable[[], Any]) -> Any:
        """Calls `make` with the insertion point at the start of the function, so that its ops
        dominate all of it."""
        ip = self.ip
        self.ip = ir.InsertionPoint.at_block_begin(self.block)
        try:
            return make()
        finally:
            self.ip = ip

    def allocate(self, make: Callable[[], ir.Value]) -> ir.Value:
        """Calls `make`, which allocates shared memory, at the start of the function."""
        made = self.at_start(make)
        self.allocations.append(made.owner.operation)
        return made

    def after(self, value: ir.Value, make: Callable[[], Any]) -> Any:
        """What `make` builds goes right behind what gives `value`, so it is there wherever `value`
        is."""
        ip = self.ip
        owner = value.owner
        if isinstance(owner, ir.Block):
            self.ip = ir.InsertionPoint.at_block_begin(owner)
        else:
            self.ip = ir.InsertionPoint.after(owner)
        try:
            return make()
        finally:
            self.ip = ip

    def static(self, spec: Any, make: Callable[[], ir.Value]) -> ir.Value:
        """The static value of a type, made once, at the function's start and after those that it
        may be made of."""
        found = self.statics.get(spec)
        if found is None:
            before = self.ip
            self.ip = self._after_statics()
            try:
                found = make()
            finally:
                self.ip = before
            self.statics[spec] = self.last_static = found
        return found

    def _after_statics(self) -> ir.InsertionPoint:
        if self.last_static is None:
            return ir.InsertionPoint.at_block_begin(self.block)
        owner = self.last_static.owner
        assert not isinstance(owner, ir.Block), "ops make static values"
        return ir.InsertionPoint.after(owner)

    def string(self, text: str) -> Any:
        return ir.StringAttr.get(text, self.context)

    def array(self, entries: list[Any]) -> Any:
        return ir.ArrayAttr.get(entries, self.context)

    def attribute(self, text: str) -> Any:
        """An attribute by its text."""
        found = self._attributes.get(text)
        if found is None:
            found = self._attributes[text] = ir.Attribute.parse(text, self.context)
        return found

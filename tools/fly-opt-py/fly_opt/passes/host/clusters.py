"""The size of clusters that a launch says: it becomes an attribute of the kernel.

Code objects hold the size with the kernel, on every target that has clusters, so that one kernel
has clusters of one size. A launch without sizes has those of its kernel.
"""

from __future__ import annotations

from typing import Any

from fly_backend import registry

from fly_opt.passes.base import refuse
from fly_opt.passes.host.values import Values

CLUSTER_DIMS = "fly.cluster_dims"  # "x,y,z"
_NONE = (1, 1, 1)


class Clusters:
    """The kernels of a module, and what launches have said of their clusters so far."""

    def __init__(self, module: Any):
        self._kernels: dict[tuple[str, ...], Any] = {
            (unit.operation.attributes["sym_name"].value, name.value): one.operation
            for unit in module.regions[0].blocks[0]
            if unit.operation.name == "gpu.module"
            for one in unit.operation.regions[0].blocks[0]
            if (name := one.operation.attributes.get("sym_name")) is not None
        }
        self._said: dict[tuple[str, str], tuple[int, ...]] = {}

    def launch(self, values: Values, op: Any, operands: list[Any]) -> None:
        """Takes note of a launch; `operands` are three sizes, or none. InputError for sizes that
        are no constants, or differ from the kernel's or from those of another launch of it."""
        unit, name = op.attributes["kernel"].value
        path = (unit, name)
        kernel = self._kernels.get(path)
        own = None if kernel is None else _own(kernel)
        sizes = _constants(values, op, operands) if operands else own or _NONE
        if own is not None and sizes != own:
            raise refuse(
                op,
                f"a launch in clusters of {_show(sizes)} workgroups, but {name} is compiled"
                f" for clusters of {_show(own)}",
                "give the launch the sizes of the kernel's attribute, or none",
            )
        other = self._said.setdefault(path, sizes)
        if sizes != other:
            raise refuse(
                op,
                f"{name} is launched in clusters of {_show(sizes)} workgroups here, and of"
                f" {_show(other)} before: a kernel has clusters of one size",
                "make a kernel of each size",
            )
        if kernel is None and sizes != _NONE:
            raise refuse(op, f"the module has no kernel {name}, which is launched in clusters")

    def mark(self) -> None:
        """Gives the kernels the sizes that their launches have, in the one attribute that every
        target's lowering reads."""
        from fly_dialect.bindings import ir

        for path, sizes in self._said.items():
            kernel = self._kernels.get(path)
            if kernel is None or sizes == _NONE:
                continue
            for name in _attributes():
                if name in kernel.attributes:
                    del kernel.attributes[name]
            kernel.attributes[CLUSTER_DIMS] = ir.StringAttr.get(",".join(map(str, sizes)))


def _attributes() -> tuple[str, ...]:
    """Where a kernel may say it: whichever backend compiles it, as other tracers write it."""
    others = (one.cluster_attribute for one in registry.loaded())
    return (CLUSTER_DIMS, *filter(None, others))


def _own(kernel: Any) -> tuple[int, ...] | None:
    """The sizes that a kernel's attribute says. InputError for one that says no sizes."""
    for name in _attributes():
        if name not in kernel.attributes:
            continue
        attribute = kernel.attributes[name]
        said = getattr(attribute, "value", attribute)
        try:
            sizes = [int(one) for one in (said.split(",") if isinstance(said, str) else said)]
        except (TypeError, ValueError):
            sizes = []
        if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
            raise refuse(
                kernel, f'{name} = {attribute}: expected one to three sizes, as in "2,1,1"'
            )
        return (*sizes, 1, 1)[:3]
    return None


def _constants(values: Values, op: Any, operands: list[Any]) -> tuple[int, ...]:
    sizes = [values.graph.constant(values.integer(op, one)) for one in operands]
    known = tuple(one for one in sizes if one is not None)
    if len(known) < len(sizes):
        raise refuse(
            op,
            "the size of a cluster is computed: code objects hold it with the kernel",
            "give the launch constants",
        )
    if min(known) < 1:
        raise refuse(op, f"a launch in clusters of {_show(known)} workgroups")
    return known


def _show(sizes: tuple[int, ...]) -> str:
    return "×".join(map(str, sizes))

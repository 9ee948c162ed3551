"""What torch says of a chain: an empty tensor of the allocation domain, on the device "meta", which
has no memory, is viewed backwards. Torch refuses a view exactly where a split can't be undone."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from host_chains.index_map import Meaning, position


@dataclass
class View:
    elements: int
    strides: tuple[int, ...] | None  # None: torch refuses the view


def view(found: Meaning) -> View:
    axes = found.allocated
    pairs = list(zip(axes.extents, axes.shared, strict=True))
    shape = [1 if shared else extent for extent, shared in pairs]
    made = torch.empty(shape, device="meta", dtype=torch.uint8)
    elements = made.untyped_storage().nbytes()
    seen = made.expand(axes.extents)
    for (name, *values), before, _ in reversed(found.moves):
        if name == "reorder":
            (order,) = values
            seen = seen.permute([order.index(axis) for axis in range(len(order))])
            continue
        axis = position((name, *values), len(before.extents))
        if name == "broadcast":
            seen = seen.narrow(axis, 0, 1).squeeze(axis)
        elif name == "merge":
            seen = seen.unflatten(axis, before.extents[axis : axis + 2])
        elif name == "split":
            shape = list(seen.shape)
            shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
            try:
                seen = seen.view(shape).narrow(axis, 0, before.extents[axis])
            except RuntimeError as error:
                if "view size is not compatible" not in str(error):
                    raise
                return View(elements, None)
    return View(elements, tuple(seen.stride()))

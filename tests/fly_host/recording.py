"""A machine that writes down what a host program asks of it."""

from dataclasses import dataclass, field
from typing import Any

from fly_common.errors import InputError
from fly_host.readers.values import Extents


@dataclass(frozen=True)
class Recorded:
    """A tensor of the machine: a name for the record, and what programs may ask about it."""

    name: str
    extents: Extents


@dataclass
class Recorder:
    """A `fly_host.readers.machine.Machine` that runs nothing. `most` refuses launches of larger
    grids."""

    events: list[Any] = field(default_factory=list)
    most: int = 1 << 40
    made: int = 0

    def tensor(self, kind: str, shape: Any, strides: Any) -> Recorded:
        self.made += 1
        return Recorded(f"{kind}{self.made}", Extents(tuple(shape), tuple(strides)))

    def allocate(self, buffer: Any, shape: Any, strides: Any, elements: int) -> Recorded:
        if min(shape, default=0) < 0:
            raise InputError(f"{buffer.name} would have the shape {shape}")
        made = self.tensor("buffer", shape, strides)
        self.events.append(("allocate", buffer.name, shape, strides, elements, made.name))
        return made

    def free(self, tensor: Recorded) -> None:
        self.events.append(("free", tensor.name))

    def view(self, tensor: Recorded, shape: Any, strides: Any, offset: int) -> Recorded:
        """A view is no event: nobody can tell when it was made."""
        name = f"{tensor.name}[{shape}, {strides}, {offset}]"
        return Recorded(name, Extents(tuple(shape), tuple(strides)))

    def extents(self, tensor: Recorded) -> Extents:
        return tensor.extents

    def look_at(self, launch: Any, grid: Any, block: Any, shared: int, integers: Any) -> None:
        if max(grid) > self.most:
            raise InputError(f"{launch.kernel}: a grid of {grid}")
        self.events.append(("look", launch.kernel, grid, block, shared, integers))

    def launch(
        self, launch: Any, grid: Any, block: Any, shared: int, arguments: Any, stream: Any
    ) -> None:
        if max(grid) > self.most:
            raise InputError(f"{launch.kernel}: a grid of {grid}")
        words = [
            [(v[0].name, v[1]) if isinstance(v, tuple) else v for v in argument]
            for argument in arguments
        ]
        self.events.append(("launch", launch.kernel, grid, block, shared, words, stream))

    def call(self, call: Any, arguments: Any, keywords: Any) -> tuple[Recorded, ...]:
        told = [getattr(value, "name", value) for value in arguments]
        named = {name: getattr(value, "name", value) for name, value in keywords.items()}
        made = tuple(self.tensor("result", (4, 2), (2, 1)) for _ in call.results)
        self.events.append(("call", call.function, told, named, [one.name for one in made]))
        return made

    def check_made(self, buffer: Any, tensor: Recorded, shape: Any, strides: Any) -> None:
        self.events.append(("made", buffer.name, tensor.name, shape, strides))
        if any(extent > self.most for extent in shape):
            raise InputError(f"{buffer.name} is another one")

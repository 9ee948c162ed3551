"""Matrix instructions of a whole wave: their fields, their text, and the table of their forms.

    <16x16x32, (f16, f16) -> f32, signA = false, …>

A family lists its forms. Any other form is refused with an error that suggests similar ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from fly_common.record import field, fields_of, record

from fly_dialect.atoms import reading
from fly_dialect.atoms.interface import MmaOp
from fly_dialect.layouts.scanner import Scanner


def option(text: str, default: int | bool, always: bool = True) -> Any:
    """A parameter written after the element types as `text = value`; with its default value, only
    if it is written `always`."""
    return field(default=default, metadata={"text": text, "always": always})


@record
class Form:
    """A shape with its element types, and the sets of matrix instructions that include it
    (`Target.matrix`)."""

    m: int
    n: int
    k: int
    a: str
    b: str
    acc: str
    families: tuple[str, ...]

    @property
    def shape(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def types(self) -> str:
        return f"({self.a}, {self.b}) -> {self.acc}"


@record
class WaveMma(MmaOp):
    """A matrix instruction that a wave executes together."""

    # All forms of the family.
    FORMS: ClassVar[tuple[Form, ...]] = ()
    m: int
    n: int
    k: int
    a: str
    b: str
    acc: str

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k

    @property
    def shape(self) -> str:
        """The shape as text: 16x16x32."""
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def types(self) -> str:
        """The element types as text: (f16, f16) -> f32."""
        return f"({self.a}, {self.b}) -> {self.acc}"

    @property
    def elements(self) -> tuple[str, str, str, str]:
        return self.a, self.b, self.acc, self.acc

    @property
    def parameters(self) -> str:
        pieces = [self.shape, self.types]
        for name, item in fields_of(type(self)).items():
            if text := item.metadata.get("text"):
                value = getattr(self, name)
                if value == item.default and not item.metadata["always"]:
                    continue
                pieces.append(f"{text} = {str(value).lower()}")
        return ", ".join(pieces)

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        shape, types = reading.shape(scanner), reading.signature(scanner)
        options: dict[str, int | bool] = {}
        for name, item in fields_of(cls).items():
            # Options have a fixed order; trailing ones may be omitted.
            if (text := item.metadata.get("text")) and scanner.take(","):
                reading.key(scanner, text)
                read = reading.flag if isinstance(item.default, bool) else reading.number
                options[name] = read(scanner)
        return cls(*shape, *types, **options)

    @property
    def is_known(self) -> bool:
        """Whether the family has this shape with these elements. si8 and ui8 match i8, because
        signedness is an option."""
        elements = tuple(map(_signless, (self.a, self.b, self.acc)))
        return any(
            form.shape == self.shape and (form.a, form.b, form.acc) == elements
            for form in self.FORMS
        )

    def nearest(self) -> str:
        """Similar forms: shapes with its types, or types with its shape, or all shapes."""
        same_types = [form for form in self.FORMS if form.types == self.types]
        same_shape = [form for form in self.FORMS if form.shape == self.shape]
        if same_types:
            return f"the shapes of {self.types} are {_list(form.shape for form in same_types)}"
        if same_shape:
            return f"the types of {self.shape} are {_list(form.types for form in same_shape)}"
        return f"the shapes are {_list(form.shape for form in self.FORMS)}"


def _signless(element: str) -> str:
    return element[1:] if element[:2] in ("si", "ui") else element


def _list(items: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(items))

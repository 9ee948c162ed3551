"""The LLVM IR of a library beside its programs: the functions that C calls, and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fly_host.native.c_interface.frame import CALL_BYTES
from fly_host.native.c_interface.function import parameters
from fly_host.native.c_interface.results import outs
from fly_host.program import Program, Tensor
from fly_image.image import Image
from fly_image.library import SECTION, packed
from fly_image.nvidia.ptx_image import PtxImage

from fly_link.shared.cpu import Kernels
from fly_link.shared.header import ABI, parameter_names
from fly_link.shared.inputs import Held

CPU, CUDA, ROCM = 1, 2, 10  # DLPack's device types
_SM = re.compile(r"sm_(\d+)(\d)([af]?)")


@dataclass
class Strings:
    """The strings of a module."""

    names: dict[str, str] = field(default_factory=dict)

    def address(self, text: str | None) -> str:
        if text is None:
            return "ptr null"
        return f"ptr {self.names.setdefault(text, f'@string.{len(self.names)}')}"

    def definitions(self) -> str:
        return "".join(
            f"{name} = private unnamed_addr constant {_text(text)}\n"
            for text, name in self.names.items()
        )


def _bytes(data: bytes) -> str:
    shown = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{shown}"'


def _text(content: str) -> str:
    return _bytes(content.encode() + b"\0")


def listed(inputs: Sequence[Held], kernels: Kernels | None) -> str:
    """The targets of a library, as a text."""
    return ", ".join([*(one.image.variant for one in inputs), *(["cpu"] if kernels else [])])


def tables(inputs: Sequence[Held], kernels: Kernels | None) -> str:
    """What runtime/library.h and runtime/cpu.h declare."""
    strings = Strings()
    content, places = packed([one.image.data for one in inputs])
    rows, lists = [], []
    for number, held in enumerate(inputs):
        image = f"ptr getelementptr (i8, ptr @fly_images, i64 {places[number]})"
        rows.append(_target(strings, lists, held.program, held.image, image))
    if kernels is not None:
        rows.append(_target(strings, lists, kernels.held.program, None, "ptr null"))
    row = "{ ptr, ptr, i32, i32, i32, i32, i32, i32, ptr, ptr }"
    names = listed(inputs, kernels)
    lines = [
        f'@fly_images = hidden constant {_bytes(content)}, section "{SECTION}", align 64',
        f"@fly_targets = hidden constant [{len(rows)} x {row}] [{', '.join(rows)}]",
        f"@fly_target_count = hidden constant i32 {len(rows)}",
        f"@fly_target_names = hidden constant {_text(names)}",
        *lists,
        *_cpu(strings, kernels),
    ]
    return "\n".join([*lines, strings.definitions()])


def _target(
    strings: Strings, lists: list[str], program: Program, image: Image | None, data: str
) -> str:
    """A row of `fly_targets`; without an image that of the processor."""
    kernels = [launch.kernel for launch in program.launches]
    name, variant = (image.target, image.variant) if image else ("cpu", "cpu")
    addresses = ", ".join(strings.address(kernel) for kernel in kernels) or "ptr null"
    listed = f"@kernels.{len(lists)}"
    lists.append(f"{listed} = internal constant [{max(len(kernels), 1)} x ptr] [{addresses}]")
    version = _SM.fullmatch(name)
    major, minor, suffix = version.groups() if version else ("0", "0", "")
    numbers = [
        CPU if image is None else CUDA if version else ROCM,
        int(isinstance(image, PtxImage)),
        int(major),
        int(minor),
        ord(suffix or "\0"),
        len(kernels),
    ]
    words = ", ".join(f"i32 {number}" for number in numbers)
    texts = f"{strings.address(name)}, {strings.address(variant)}"
    row = "{ ptr, ptr, i32, i32, i32, i32, i32, i32, ptr, ptr }"
    return f"{row} {{ {texts}, {words}, {data}, ptr {listed} }}"


def _cpu(strings: Strings, kernels: Kernels | None) -> list[str]:
    if kernels is None:
        return ["@fly_cpu = hidden constant ptr null"]
    numbers = [kernels.kernels.index(one.kernel) for one in kernels.held.program.launches]
    sites = [
        "{ ptr, ptr, i32, i32 } { "
        f"{strings.address(what)}, {strings.address(place[0] if place else None)},"
        f" i32 {place[1] if place else 0}, i32 {place[2] if place else 0} }}"
        for what, place in kernels.sites
    ]
    variables = [
        f"{{ ptr, i32 }} {{ {strings.address(label)}, i32 {flags} }}"
        for label, flags in kernels.variables
    ]
    return [
        "@fly_cpu = hidden constant ptr @fly_cpu_launch",
        "declare i32 @fly_cpu_launch(ptr, i32, ptr, i32, ptr, i64)",
        _array("fly_cpu_numbers", "i32", [f"i32 {number}" for number in numbers]),
        _array("fly_sites", "{ ptr, ptr, i32, i32 }", sites),
        _array("fly_variable_names", "{ ptr, i32 }", variables),
        f"@fly_variable_count = hidden constant i32 {len(variables)}",
    ]


def _array(name: str, kind: str, rows: list[str]) -> str:
    return f"@{name} = hidden constant [{len(rows)} x {kind}] [{', '.join(rows)}]"


def functions(program: Program, programs: Sequence[str]) -> str:
    """The functions that C calls. `programs` has the name of each target's function."""
    strings, entry = Strings(), program.entry
    given = parameters(program)
    names = parameter_names(program)
    lines, checks = [], []
    results = [p.kind for p in outs(program).values()]
    tensors = {n for n, p in enumerate(program.parameters) if isinstance(p, Tensor)}
    first = min(tensors)
    for number, (_, value) in enumerate(given):
        result = number - len(program.parameters)
        if number in tensors or result >= 0:
            checks += [
                f"  %null.{number} = icmp eq ptr {value}, null",
                f"  br i1 %null.{number}, label %bad.{number}, label %good.{number}",
                f"bad.{number}:",
                f"  %said.{number} = call i32 @fly_null({strings.address(names[number])})",
                f"  ret i32 %said.{number}",
                f"good.{number}:",
            ]
        if result >= 0 and results[result] != "integer":
            checks.append(f"  store ptr null, ptr {value}")
    passed = ", ".join(["ptr %call", *(" ".join(pair) for pair in given)])
    cases = [f"i32 {number}, label %t{number}" for number in range(len(programs))]
    for number, name in enumerate(programs):
        lines += [
            f"t{number}:",
            f"  %s{number} = call i32 @{name}({passed})",
            "  call void @fly_leave(ptr %call)",
            f"  ret i32 %s{number}",
        ]
    types = ", ".join(["ptr", *(kind for kind, _ in given)])
    declarations = [f"declare i32 @{name}({types})" for name in dict.fromkeys(programs)]
    parameter_text = ", ".join([*(" ".join(pair) for pair in given), "ptr %stream"])
    body = "\n".join(
        [
            *declarations,
            "declare void @fly_clear()",
            "declare ptr @fly_text()",
            "declare i32 @fly_null(ptr)",
            "declare i32 @fly_enter(ptr, ptr, ptr)",
            "declare void @fly_leave(ptr)",
            "@fly_target_names = external hidden constant i8",
            f"define i32 @{entry}({parameter_text}) nounwind {{",
            f"  %call = alloca [{CALL_BYTES} x i8], align 16",
            "  call void @fly_clear()",
            *checks,
            f"  %target = call i32 @fly_enter(ptr %call, ptr %p.{first}, ptr %stream)",
            f"  switch i32 %target, label %none [ {'  '.join(cases)} ]",
            "none:",
            "  %status = sub i32 0, %target",
            "  ret i32 %status",
            *lines,
            "}",
            f"define ptr @{entry}_error() nounwind {{",
            "  %text = call ptr @fly_text()",
            "  ret ptr %text",
            "}",
            f"define ptr @{entry}_targets() nounwind {{",
            "  ret ptr @fly_target_names",
            "}",
            f"define i32 @{entry}_abi() nounwind {{",
            f"  ret i32 {ABI}",
            "}",
        ]
    )
    return f"{body}\n{strings.definitions()}"

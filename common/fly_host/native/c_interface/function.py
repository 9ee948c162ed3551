"""One target's function of a library, in LLVM IR: `i32 @NAME(ptr call, …)`.

arguments   guards of tensors, numbers             a guard that fails: its words, status 1
ahead       integers and checks that are needed in any case
steps       allocate, launch, loop, branch         a device's failure: the status in the call
results     tensors and integers, stored where the caller says
"""

from __future__ import annotations

from collections.abc import Sequence

from fly_host.native.c_interface import results
from fly_host.native.c_interface.arguments import CReader, llvm_type, scalar
from fly_host.native.c_interface.frame import DECLARATIONS, STATUS, STREAM, CFrame
from fly_host.native.c_interface.steps import CSteps
from fly_host.native.emission import arithmetic, fitting, outputs
from fly_host.native.emission.frame import ERROR, LEAVE, MISS, Way
from fly_host.native.specialisation import Array, KernelLimits, Specialisation
from fly_host.program import Allocate, Program, Scalar, Tensor, every_step

NODE_BYTES = 40  # of memory that kernels may access, see the runtime library's "Node"


def parameters(program: Program) -> list[tuple[str, str]]:
    """Types and names of the parameters: the program's, then its results; not the stream."""
    given = [(llvm_type(p), f"%p.{n}") for n, p in enumerate(program.parameters)]
    return [*given, *(("ptr", f"%out.{n}") for n, _ in enumerate(results.outs(program)))]


def write(
    name: str, program: Program, limits: Sequence[KernelLimits], *, checked: bool = False
) -> str:
    """The module of a function. `checked`: the device needs to know what memory kernels may
    access. Unavailable where kernels do not take what the program gives."""
    arrays = {p.name: Array("dlpack") for p in program.parameters if isinstance(p, Tensor)}
    specialisation = Specialisation(program, arrays, limits, Array("dlpack"))
    frame = CFrame(specialisation, Way(True, for_c=True))
    code = frame.code
    for launch, limit in zip(program.launches, limits, strict=True):
        fitting.check_interface(frame, launch, limit)
    steps = CSteps(frame)
    room = code.room("i32", 4)
    _arguments(frame, steps, checked)
    steps.ahead()
    steps.run(program.steps)
    for number, operand in enumerate(results.outs(program).values()):
        results.write(frame, operand, f"%out.{number}")
    code.store("i32", "0", room)
    code.jump(LEAVE)
    code.begin(MISS)
    code.store("i32", "1", room)
    code.jump(LEAVE)
    code.begin(ERROR)
    code.store("i32", code.load("i32", "%table", STATUS), room)
    code.jump(LEAVE)
    code.begin(LEAVE)
    frame.drop_all()
    code.do(f"ret i32 {code.load('i32', room)}")
    words = ", ".join(["ptr %table", *(" ".join(pair) for pair in parameters(program))])
    makes = any(isinstance(step, Allocate) for step in every_step(program.steps))
    return "".join(
        (
            DECLARATIONS,
            *(line + "\n" for line in arithmetic.DECLARATIONS),
            *(text for _, text, _ in frame.guards.values()),
            outputs.SPAN if makes else "",
            f"\ndefine hidden i32 @{name}({words}) nounwind {{\n",
            "\n".join(["entry:", *code.allocations, *code.lines]),
            "\n}\n\n",
            frame.constants(),
            "attributes #0 = { nounwind }\n",
        )
    )


def _arguments(frame: CFrame, steps: CSteps, checked: bool) -> None:
    code, program = frame.code, frame.program
    reader = CReader(frame)
    for number, parameter in enumerate(program.parameters):
        if isinstance(parameter, Tensor):
            reader.parameter(parameter, f"%p.{number}")
    reader.finish()
    for number, parameter in enumerate(program.parameters):
        if isinstance(parameter, Scalar):
            frame.scalars[parameter.name] = scalar(frame, parameter, f"%p.{number}")
        elif not isinstance(parameter, Tensor):
            frame.streams[parameter.name] = f"%p.{number}"
    current = code.load("ptr", "%table", STREAM)
    makes = any(isinstance(step, Allocate) for step in every_step(program.steps))
    for name in dict.fromkeys(launch.stream for launch in program.launches):
        handle = current
        if name is not None:
            given = frame.streams[name]
            none = code.value(f"icmp eq ptr {given}, null")
            handle = code.value(f"select i1 {none}, ptr {current}, ptr {given}")
            if makes:
                # Memory is allocated and freed in the order of the call's stream.
                same = code.value(f"icmp eq ptr {handle}, {current}")
                frame.refuse(same, f"{name} must be the call's stream: {program.entry} allocates")
        steps.launches.handles[name] = handle
    if checked:
        for parameter in program.parameters:
            if isinstance(parameter, Tensor):
                _bound(frame, steps, parameter)


def _bound(frame: CFrame, steps: CSteps, parameter: Tensor) -> None:
    """Lets kernels access a tensor's memory."""
    address, size, _ = steps.launches.covered(frame.tensors[parameter.name])
    node = frame.code.room(f"[{NODE_BYTES} x i8]")
    writable = int(parameter.access != "r")
    frame.code.do(
        f"call void @fly_bound(ptr %table, ptr {node}, ptr {frame.text(parameter.name)},"
        f" i64 {address}, i64 {size}, i32 {writable})"
    )

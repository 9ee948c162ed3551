"""A compiled code object with its launch plan: inspect, run, save and load it."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fly_common.errors import Fault, FlyError, InputError, UsageError

from fly.call.tracebacks import hide_frames

if TYPE_CHECKING:
    from fly_host.plan import Plan
    from fly_image.image import Image, KernelInterface
    from fly_run.devices.options import Options
    from fly_run.launch.binder import Binder
    from fly_run.launch.binding import Bound
    from fly_run.launch.execution import Ran

    from fly.chains.chain import Chain


class Compiled:
    """A HSACO, plus its module and chain if this process compiled it. Immutable.

    `hsaco` holds the bytes of the code object, as `fly-run` and `fly.load` read them.
    """

    def __init__(self, hsaco: bytes, *, module: bytes | None = None, chain: Chain | None = None):
        self.hsaco = hsaco
        self._module = module
        self._chain = chain

    @functools.cached_property
    def image(self) -> Image:
        """The parsed code object. Raises InputError if it is damaged."""
        import fly_image

        return fly_image.read(self.hsaco)

    @property
    def target(self) -> str:
        return self.image.target

    @property
    def kernels(self) -> Mapping[str, KernelInterface]:
        """The kernels by name, with their registers (`vgpr_count`, …), LDS and arguments."""
        return self.image.kernels

    @property
    def plan(self) -> Plan | None:
        """The launch plan, or None if the code object was not made by this project."""
        return self.image.plan

    def ir(self, kind: str) -> str | bytes:
        """Returns the output of one stage: "mlir" (the traced module), "ll", "opt.ll", "o",
        "hsaco", or another stage's suffix. "asm" is the disassembled code object. Returns str for
        text formats."""
        kind = kind.removeprefix(".")
        if kind == "hsaco":
            return self.hsaco
        if kind == "asm":
            return self._disassembly()
        if self._module is None or self._chain is None:
            raise UsageError(
                f"a code object that was loaded has no {kind!r}", hint="it has 'asm' and 'hsaco'"
            )
        if kind == "mlir":
            return self._module.decode()
        from fly.chains.chain import results

        for stage, data in results(self._chain, self._module):
            if stage.suffix == f".{kind}":
                return data if data[:4] == b"\x7fELF" else data.decode(errors="replace")
        known = ["mlir", *(stage.suffix[1:] for stage in self._chain), "asm"]
        raise UsageError(
            f"the chain does not produce {kind!r}", hint=f"it produces {', '.join(known)}"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the HSACO to `path`, atomically."""
        from pathlib import Path

        from fly_common.filter import write_atomically

        write_atomically(Path(path), self.hsaco)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Runs the plan on positional or named arguments. Kernels write into the arrays."""
        try:
            self._run(self._named(args, kwargs), "auto", None)
        except FlyError as error:
            hide_frames(error)
            raise error

    def run(
        self, values: Mapping[str, Any], *, device: str = "auto", options: Options | None = None
    ) -> Sequence[Ran]:
        """Runs the plan on named arguments. Returns one entry per launch, with instruction counts.
        `options` configure the device: `Options(observers=(Statistics(),))` collects statistics.

        Raises what `fly-run` raises: InputError for a value that does not fit its parameter,
        UsageError for unknown or missing names, Fault for an error in a kernel.
        """
        try:
            return self._run(values, device, options)
        except FlyError as error:
            hide_frames(error)
            raise error

    def _run(
        self, values: Mapping[str, Any], device: str, options: Options | None
    ) -> Sequence[Ran]:
        from fly.call.arrays import as_value

        viewed = {name: as_value(value, name) for name, value in values.items()}
        return self.run_viewed(viewed, device, options)

    def run_viewed(
        self, values: Mapping[str, Any], device: str = "auto", options: Options | None = None
    ) -> Sequence[Ran]:
        """`run` for values already converted by `fly.call.arrays.as_value`."""
        return self._launch(self._binder.bind(values), device, options)

    def _launch(self, bound: Bound, device: str, options: Options | None) -> Sequence[Ran]:
        image = self.image
        with self._runtime.device(device, image.target, options) as opened:
            try:
                return opened.run(bound, image)
            except Fault as error:
                from fly.call.fault_lines import locate

                locate(error, image, self._module, self._chain)
                raise

    @functools.cached_property
    def _runtime(self) -> ModuleType:
        from fly_run.launch import runtime

        return runtime

    @functools.cached_property
    def _binder(self) -> Binder:
        from fly_run.launch.binder import Binder

        return Binder(self._plan(), self.image)

    def launch(
        self,
        kernel: str | None,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        args: Sequence[Any],
        *,
        dynamic_lds: int = 0,
        device: str = "auto",
        options: Options | None = None,
    ) -> Sequence[Ran]:
        """Launches one kernel without the plan. The arguments are the kernel's own, in order:
        arrays for buffers, `np.int32(5)` or bytes for values. `grid` counts workgroups, `block`
        counts work items. With `kernel=None`, launches the only kernel in the code object."""
        try:
            return self._launch_kernel(kernel, grid, block, args, dynamic_lds, device, options)
        except FlyError as error:
            hide_frames(error)
            raise error

    def _launch_kernel(
        self,
        kernel: str | None,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        args: Sequence[Any],
        dynamic_lds: int,
        device: str,
        options: Options | None,
    ) -> Sequence[Ran]:
        from fly_run.launch.launch import bind_arguments

        from fly.call.arrays import as_value, is_array

        viewed = [
            as_value(value, f"argument {index}") if is_array(value) else value
            for index, value in enumerate(args)
        ]
        bound = bind_arguments(self.image, kernel, grid, block, viewed, dynamic_lds)
        return self._launch(bound, device, options)

    def __repr__(self) -> str:
        plan = self.plan
        name = plan.entry if plan else ", ".join(self.kernels)
        return f"<compiled {name} for {self.target}, {len(self.hsaco)} bytes>"

    def _plan(self) -> Plan:
        if self.plan is None:
            raise InputError(
                "the code object has no launch plan",
                hint="launch a kernel by its own arguments: .launch(kernel, grid, block, args)",
            )
        return self.plan

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        plan = self._plan()
        names = [parameter.name for parameter in plan.parameters]
        if len(args) > len(names):
            raise UsageError(
                f"{plan.entry} takes {len(names)} arguments, got {len(args)}",
                hint=f"parameters: {', '.join(names)}",
            )
        values = dict(zip(names, args, strict=False))
        for name in kwargs:
            if name in values:
                raise UsageError(f"{plan.entry} got {name} twice, by position and by name")
        return {**values, **kwargs}

    def _disassembly(self) -> str:
        from fly_common import toolchain

        done = toolchain.run_program("llvm-objdump", ["-d", "-"], self.hsaco)
        if done.returncode:
            raise InputError(f"llvm-objdump: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")


def load(source: bytes | str | os.PathLike[str]) -> Compiled:
    """Loads a HSACO from bytes or from a file. It may have been compiled by other tools.

    Raises InputError if it is not a code object, UsageError if the file cannot be read.
    """
    from fly_common.filter import read_input

    data = source if isinstance(source, bytes) else read_input(os.fspath(source))
    made = Compiled(data)
    made.image  # noqa: B018  read now, so that a damaged file is refused here
    return made

"""A compiled image with its host program: inspect, run, save and load it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fly_common.errors import Fault, FlyError, InputError, UsageError
from fly_plugin import activated

from fly.call.reports import disassembly
from fly.call.reports.tracebacks import hide_frames

if TYPE_CHECKING:
    from fly_host.native.calling import Native
    from fly_host.program import Program
    from fly_image.image import Image, KernelInterface
    from fly_run.devices.options import Options
    from fly_run.launch.completed import Ran
    from fly_run.launch.execution import Outcome
    from fly_run.launch.runtime import Opened

    from fly.call.host_options import CompileOptions
    from fly.chains.chain import Chain


class Compiled:
    """An image (a HSACO, a cubin, PTX), plus its module and chain if this process compiled it.
    Immutable.

    `data` holds the bytes of the image, as `fly-run` and `fly.load` read them.
    """

    def __init__(self, data: bytes, *, module: bytes | None = None, chain: Chain | None = None):
        self.data = data
        self._module = module
        self._chain = chain

    @property
    def hsaco(self) -> bytes:
        """`data`, by the name of AMD's format."""
        return self.data

    @functools.cached_property
    def image(self) -> Image:
        """The parsed image. Raises InputError if it is damaged."""
        import fly_image

        return fly_image.read(self.data)

    @property
    def target(self) -> str:
        return self.image.target

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that there is code for: several, if this is a library."""
        return (self.target,)

    @property
    def kernels(self) -> Mapping[str, KernelInterface]:
        """The kernels by name, with their registers (AMD: `vgpr_count`, …; NVIDIA: `resources`),
        shared memory and arguments."""
        return self.image.kernels

    @property
    def program(self) -> Program | None:
        """The host program, or None if the code object was not made by this project."""
        return self.image.program

    def ir(self, kind: str) -> str | bytes:
        """Returns the output of one stage by its suffix: "mlir" (the traced module), "ll",
        "opt.ll"; for AMD "o", "hsaco"; for NVIDIA "ptx", "cubin". "asm" is the disassembled image.
        Returns str for text formats."""
        kind = kind.removeprefix(".")
        if kind == self._suffix:
            return disassembly.text(self.data) if kind == "ptx" else self.data
        if kind == "asm":
            return disassembly.text(self.data)
        if self._module is None or self._chain is None:
            raise UsageError(
                f"a code object that was loaded has no {kind!r}",
                hint=f"it has 'asm' and {self._suffix!r}",
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
        """Writes the image to `path`, atomically."""
        from pathlib import Path

        from fly_common.filter import write_atomically

        write_atomically(Path(path), self.data)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the host program on these arguments, in the order of its parameters or by name, and
        returns what it returns. Arrays that kernels write hold the results afterwards."""
        try:
            return self._run(self._named(args, kwargs), "auto", None, None).results
        except FlyError as error:
            hide_frames(error)
            raise error

    def run(
        self,
        values: Mapping[str, Any],
        *,
        device: str = "auto",
        options: Options | None = None,
        host: CompileOptions | None = None,
    ) -> Outcome:
        """Runs the host program on arguments by name. The outcome holds what it returns
        (`results`), and what was launched, with instruction counts (`ran`). `options` are the
        device's: `Options(observers=(Statistics(),))` counts what happens. `host` says how the
        program is run; native code is for repeated calls of functions, and not used here.

        Raises what `fly-run` raises: InputError for a value that does not fit its parameter,
        UsageError for unknown or missing names, Fault for an error in a kernel.
        """
        try:
            return self._run(values, device, options, host)
        except FlyError as error:
            hide_frames(error)
            raise error

    def _run(
        self,
        values: Mapping[str, Any],
        device: str,
        options: Options | None,
        host: CompileOptions | None,
    ) -> Outcome:
        from fly.call.arrays.views import as_value

        viewed = {name: as_value(value, name) for name, value in values.items()}
        return self.run_viewed(values, viewed, device, options, host)

    def run_viewed(
        self,
        values: Mapping[str, Any],
        viewed: Mapping[str, Any],
        device: str = "auto",
        options: Options | None = None,
        host: CompileOptions | None = None,
    ) -> Outcome:
        """`run` for values of which `arrays.views.as_value` has made `viewed`: NumPy arrays and
        Python's numbers."""
        from fly_run.launch import readers

        from fly.call.arrays.array_kinds import arrays_for
        from fly.call.host_options import DEFAULT

        program, arrays = self._program(), arrays_for(values.values())
        reader = readers.choose((host or DEFAULT).reader)

        def work(opened: Opened, image: Image) -> Outcome:
            return opened.run(program, image, values, viewed, arrays, reader)

        return self._execute(work, with_place(device, self.target, viewed.values()), options)

    def check(self, values: Mapping[str, Any], viewed: Mapping[str, Any]) -> None:
        """Raises what `run_viewed` would raise for the arguments by themselves."""
        from fly_run.launch.checking import check

        check(self._program(), {**values, **viewed})

    @property
    def program_name(self) -> str:
        """The name of the host function."""
        return self._program().entry

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters of the host program."""
        return tuple(parameter.name for parameter in self._program().parameters)

    def native(
        self,
        arguments: Sequence[object],
        device: str = "auto",
        host: CompileOptions | None = None,
    ) -> Native:
        """Native code for calls of the host program like the one with these arguments, in the order
        of its parameters. fly_host.native.Unavailable where there can be none."""
        from fly.call.host_options import DEFAULT

        host = host or DEFAULT
        from fly_run.launch import native

        image, runtime = self.image, self._runtime
        named = self._device(device)

        from fly.call.arrays.views import as_value, is_array

        program = self._program()
        viewed = [as_value(value, "") for value in arguments if is_array(value)]
        chosen = with_place(named, image.target, viewed)
        with self._plugins():
            try:
                made = native.compile(
                    program,
                    image,
                    arguments,
                    lambda: runtime.device(chosen, image.target),
                    self._locate,
                    host.for_native(),
                )
            except FlyError as error:  # the driver does not load the code
                self._locate(error)
                raise
        if host.dump is not None:
            host.write(program, ".ll", made.llvm())
            host.write(program, ".opt.ll", made.llvm(optimised=True))
        return made

    def on_device(
        self,
        work: Callable[[Opened, Image], Any],
        values: Iterable[Any] = (),
        device: str = "auto",
        options: Options | None = None,
    ) -> Any:
        """Returns what `work` returns for the device, opened, and the image. `values` are the
        arrays that it is about, as NumPy's: those in device memory choose among several GPUs.
        Errors about a kernel get the Python line."""
        return self._execute(work, with_place(device, self.target, values), options)

    def _execute(
        self,
        work: Callable[[Opened, Image], Any],
        device: str,
        options: Options | None,
    ) -> Any:
        image = self.image
        with (
            self._plugins(),
            self._runtime.device(self._device(device), image.target, options) as opened,
        ):
            try:
                return work(opened, image)
            except FlyError as error:
                self._locate(error)
                raise

    def _locate(self, error: FlyError) -> None:
        """Adds the Python line to an error that is about a kernel."""
        if isinstance(error, Fault) or error.kernel is not None:
            from fly.call.reports.fault_lines import locate

            locate(error, self.image, self._module, self._chain)

    def _plugins(self) -> contextlib.AbstractContextManager[None]:
        """Activates the plugins that the chain was made with: they may have the device."""
        plugins = self._chain.plugins if self._chain else ()
        return activated(plugins) if plugins else contextlib.nullcontext()

    def _device(self, name: str) -> str:
        """The device that `name` means for the backend that compiled the code."""
        from fly_run.devices.registry import of_backend

        with self._plugins():
            return of_backend(name, self._chain.backend if self._chain else None)

    @functools.cached_property
    def _runtime(self) -> ModuleType:
        from fly_run.launch import runtime

        return runtime

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
        """Launches one kernel without the program. The arguments are the kernel's own, in order:
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

        from fly.call.arrays.views import as_value, is_array

        viewed = [
            as_value(value, f"argument {index}") if is_array(value) else value
            for index, value in enumerate(args)
        ]
        call = bind_arguments(self.image, kernel, grid, block, viewed, dynamic_lds)
        device = with_place(device, self.target, viewed)
        return self._execute(lambda opened, image: opened.run_kernel(call, image), device, options)

    def __repr__(self) -> str:
        program = self.program
        name = program.entry if program else ", ".join(self.kernels)
        return f"<compiled {name} for {self.target}, {len(self.data)} bytes>"

    def _program(self) -> Program:
        if self.program is None:
            raise InputError(
                "the code object has no host program",
                hint="launch a kernel by its own arguments: .launch(kernel, grid, block, args)",
            )
        return self.program

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        program = self._program()
        names = [parameter.name for parameter in program.parameters]
        if len(args) > len(names):
            raise UsageError(
                f"{program.entry} takes {len(names)} arguments, got {len(args)}",
                hint=f"parameters: {', '.join(names)}",
            )
        values = dict(zip(names, args, strict=False))
        for name in kwargs:
            if name in values:
                raise UsageError(f"{program.entry} got {name} twice, by position and by name")
        return {**values, **kwargs}

    @property
    def _suffix(self) -> str:
        """The suffix of the image's file."""
        return disassembly.suffix(self.data)


def with_place(device: str, target: str, values: Iterable[Any]) -> str:
    """The device that is meant: the one that the first tensor in device memory is on, where
    `device` leaves that open."""
    # There is no such tensor before the module was imported that describes them.
    if "fly_run.launch.arrays.device_arrays" not in sys.modules:
        return device
    from fly_run.devices.registry import numbered
    from fly_run.launch.arrays.device_arrays import some_place

    place = some_place(values)
    return device if place is None else numbered(device, target, place[1])

"""Making a launcher a Python callable.

native = compile(specialise(program, arguments, limits), entry)
native.call(a, b, 1000)             the result, or NotImplemented: not a call for this one
native.prepare(a, b, 1000)()        only launches
native.llvm(), native.llvm(optimised=True)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from fly_host.native import arrays, engine, failures, library, probing
from fly_host.native.builtin import Held, builtin
from fly_host.native.emission import launcher
from fly_host.native.emission.frame import Way
from fly_host.native.emission.launcher import Text
from fly_host.native.failures import Failures
from fly_host.native.prepared import Handle, Recording
from fly_host.native.probing import Torch
from fly_host.native.specialisation import (
    Array,
    Batch,
    DriverEntry,
    Entry,
    KernelLimits,
    Options,
    PythonEntry,
    Specialisation,
)
from fly_host.native.unavailable import Unavailable
from fly_host.program import Call, Program, Tensor, every_step
from fly_host.readers.machine import Services


class Native:
    """The native code of a specialisation. `batches` are what a PythonEntry gets."""

    def __init__(
        self,
        specialisation: Specialisation,
        entry: Entry,
        machine: Services | None,
        options: Options,
    ):
        self.specialisation, self.entry = specialisation, entry
        self.machine, self.options = machine, options
        self.torch = _torch_of(specialisation)
        self.text = launcher.write(specialisation, way_of(entry), self.torch)
        self.batches: tuple[Batch, ...] = self.text.batches
        self.call: Callable[..., Any] = self._builtin(self.text, entry)
        self._keeping: Text | None = None

    def llvm(self, optimised: bool = False) -> str:
        """The LLVM IR of the launcher, as it is written or behind LLVM's passes."""
        if optimised:
            return engine.optimised(self.text.llvm, self.options)
        return self.text.llvm

    def prepare(self, *args: Any) -> Any:
        """A callable that only launches what this call would launch, with the same tensors, and
        returns the same result each time. Library functions are called by it, not here.
        NotImplemented where the call is not for this launcher."""
        if self._keeping is None:
            self._keeping = launcher.write(self.specialisation, Way(False), self.torch, keep=True)
        recording = Recording(self.specialisation, self._keeping.batches)
        found = self._builtin(self._keeping, PythonEntry(recording), recording)(*args)
        if found is NotImplemented:
            return NotImplemented
        result, made = found
        handle = Handle(recording, result, (args, made))
        if isinstance(self.entry, PythonEntry):
            return handle.for_python(self.entry, self.batches)
        return handle.for_driver(self.specialisation, self.entry, self.options)

    # -- slots

    def _builtin(self, text: Text, entry: Entry, recording: Recording | None = None) -> Any:
        functions = library.load(text.llvm, self.options)
        table = self._table(text, entry, recording)
        name = self.specialisation.program.entry
        return builtin(name, functions.call, table, (self.specialisation,))

    def _table(self, text: Text, entry: Entry, recording: Recording | None) -> list[object]:
        program = self.specialisation.program
        resolver = _Slots(self, text, entry)
        calls = failures.library_calls(program, self.machine, self._check_made)
        if recording is not None:
            steps = (step for step in every_step(program.steps) if isinstance(step, Call))
            calls = [recording.library(step, call) for step, call in zip(steps, calls, strict=True)]
        resolver.calls = calls
        return [resolver.content(*name) for name in text.slots.places]

    def _check_made(self, tensor: Any, name: str) -> None:
        """What a library call made must be what native code can read."""
        made = self.specialisation.made
        module: Any = sys.modules["torch" if made.kind == "torch" else "numpy"]
        wanted = module.Tensor if made.kind == "torch" else module.ndarray
        if not isinstance(tensor, wanted):
            raise TypeError(f"{name} must be a {wanted.__name__}, not {type(tensor).__name__}")


class _Slots:
    """The contents of slots."""

    def __init__(self, native: Native, text: Text, entry: Entry):
        self.native, self.text, self.entry = native, text, entry
        self.specialisation = native.specialisation
        self.calls: list[Callable[..., Any]] = []
        self.defaults = launcher.defaults(self.specialisation.program.parameters)

    def content(self, kind: str, which: Any = None) -> object:
        """An address or an object."""
        if kind in ("dltensor", "is_neg", "THPVariable_Wrap") or kind.startswith("aoti_"):
            return self._torch(kind)
        if kind.startswith("PyArray"):
            return probing.numpy_functions()[kind]
        if kind in ("entry", "kernel", "error", "stream", "describe"):
            return self._entry(kind, which)
        return Held(self._object(kind, which))

    def _torch(self, kind: str) -> int:
        torch = self.native.torch
        assert torch is not None
        if kind in ("dltensor", "is_neg"):
            return getattr(torch, kind)
        return torch.functions[kind]

    def _entry(self, kind: str, which: Any) -> object:
        entry = self.entry
        if isinstance(entry, PythonEntry):
            return Held(entry.run)
        if kind == "entry":
            return entry.function
        if kind == "kernel":
            return entry.kernels[which]
        if kind == "describe":
            assert entry.describing is not None
            return entry.describing.function
        return Held(failures.raising(entry.error) if kind == "error" else entry.stream)

    def _object(self, kind: str, which: Any) -> object:
        modules: Any = sys.modules
        if kind.startswith(("torch.", "numpy.")):
            found: Any = modules[kind.partition(".")[0]]
            for name in kind.split(".")[1:]:
                found = getattr(found, name)
            return found
        if kind == "dtype":
            return self.specialisation.arrays[which].dtype
        if kind == "descr":
            return arrays.dtype_object(self.specialisation, which)
        if kind == "allocate":
            return arrays.allocator(self.specialisation, which)
        if kind == "default":
            return self.defaults[which]
        if kind == "constant":
            return self.text.slots.constants[which]
        if kind == "batch":
            return which
        if kind == "call":
            return self.calls[which]
        if kind == "view":
            return arrays.view
        if kind == "cuda_stream":
            return sys.intern("cuda_stream")
        assert kind == "fail", kind
        program = self.specialisation.program
        return Failures(program, self.text.sites, self.native.machine).fail


def way_of(entry: Entry) -> Way:
    """What of an entry decides about the code."""
    if isinstance(entry, PythonEntry):
        return Way(False)
    stream = entry.stream is not None
    return Way(True, entry.end, entry.blocking, stream, describing=entry.describing)


def compile(
    specialisation: Specialisation,
    entry: Entry,
    machine: Services | None = None,
    options: Options | None = None,
) -> Native:
    """Native code for a specialisation. `machine` takes torch's and NumPy's arrays as they are: it
    calls library functions, and has the words for layouts and launches that are refused behind the
    first step. Unavailable where there can be no native code."""
    probing.check_python()
    if isinstance(entry, DriverEntry) and len(entry.kernels) != len(specialisation.limits):
        raise Unavailable("there is not one kernel for each launch")
    return Native(specialisation, entry, machine, options or Options())


def llvm_text(
    program: Program,
    limits: Sequence[KernelLimits],
    *,
    kind: str = "numpy",
    driver: bool = True,
    optimised: bool = False,
    options: Options | None = None,
) -> str:
    """The LLVM IR of a launcher for arrays of one kind on the CPU, without any that could be
    called: for people and tests. "torch" needs a process that has imported it."""
    array = Array(kind)
    arrays = {p.name: array for p in program.parameters if isinstance(p, Tensor)}
    specialisation = Specialisation(program, arrays, limits, array)
    text = launcher.write(specialisation, Way(driver), _torch_of(specialisation)).llvm
    return engine.optimised(text, options or Options()) if optimised else text


def _torch_of(specialisation: Specialisation) -> Torch | None:
    kinds = {array.kind for array in (*specialisation.arrays.values(), specialisation.made)}
    return probing.torch() if "torch" in kinds else None

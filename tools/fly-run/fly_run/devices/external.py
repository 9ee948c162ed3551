"""A command that launches: any program that can run an image, for `--device exec:COMMAND`.

For the launches up to a wait, the command is run once, as

    COMMAND IMAGE REQUEST

IMAGE is the file that was given to fly-run. REQUEST is a JSON document; its files lie beside it:

    {"version": 1, "target": "gfx942",
     "buffers": [{"name": "A", "file": "0.bin", "bytes": 4000, "writable": false}, …],
     "launches": [{"kernel": "add", "grid": [4, 1, 1], "block": [256, 1, 1], "shared": 0,
                   "arguments": "…", "pointers": [[0, 0, 0], …]}, …]}

`arguments` are the packed arguments in hexadecimal, with zeros in place of addresses; `pointers`
says (offset into the arguments, buffer, offset into the buffer) of each. A buffer's file holds its
bytes; the command overwrites those of writable buffers with the results. Status 0 is success;
with any other the run ends in a fault with the last line of the command's standard error, which
the user sees in any case.
"""

from __future__ import annotations

import ctypes
import json
import shlex
import subprocess
import tempfile
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fly_common.errors import Fault, InputError, MissingError, UsageError
from fly_host.tiles import Tile
from fly_image.image import POINTER, Image, KernelInterface, Triple

from fly_run.devices.options import Options
from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE, Function, Stream

VERSION = 1
_STEP = 1 << 40  # between the addresses of buffers, which the device makes up


class _Function(NamedTuple):
    module: _Module
    interface: KernelInterface


@dataclass(eq=False)
class _Module:
    image: Image
    path: Path

    def variable(self, name: str) -> None:
        """See Module."""
        raise MissingError(
            f"the device exec can't read {name}, a variable of the code",
            hint="choose another device, or compile without asserts, fx.printf and the plugins that"
            " have kernels report",
        )

    def __post_init__(self) -> None:
        self._functions: dict[str, _Function] = {}

    def function(self, name: str | None) -> _Function:
        interface = self.image.kernel(name)
        return self._functions.setdefault(interface.name, _Function(self, interface))

    def unload(self) -> None:
        self.path.unlink(missing_ok=True)


class _Buffer(NamedTuple):
    """`nbytes` bytes of host memory; `own` holds them if the device allocated them."""

    label: str
    host: int
    nbytes: int
    writable: bool
    own: object = None


class External:
    """The device. Launches wait until something asks for their results."""

    concurrent = False
    own_memory = False
    place = None
    instructions = None
    remarks: tuple[str, ...] = ()

    def __init__(self, target: str, options: Options, command: str):
        option = options.emulators
        if option is not None:
            raise UsageError(f"{option} is an option of the emulator, not of an external launcher")
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--device exec:{command}: {error}") from None
        if not self._words:
            raise UsageError(
                "--device exec: names no command", hint="write --device 'exec:my-launcher --fast'"
            )
        self.target, self.name = target, f"exec:{command}"
        self._folder = tempfile.TemporaryDirectory(prefix="fly-run-")
        self._buffers: dict[int, _Buffer] = {}
        self._next, self._modules = _STEP, 0
        self._waiting: list[tuple[_Module, dict[str, Any], list[tuple[int, int]]]] = []

    # -- memory

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        """See Device."""
        return self._add(_Buffer(label, pointer, nbytes, writable))

    def _add(self, buffer: _Buffer) -> int:
        address, self._next = self._next, self._next + _STEP
        self._buffers[address] = buffer
        return address

    def adopt_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        """See Device."""
        return [self.adopt(at, size, writable=write, label=name) for name, at, size, write in spans]

    def release(self, address: int) -> None:
        """See Device."""
        self.synchronize()
        if self._buffers.pop(address, None) is None:
            raise UsageError(f"no buffer begins at 0x{address:x}")

    def release_all(self, addresses: Sequence[int]) -> None:
        """See Device."""
        for address in addresses:
            self.release(address)

    def alloc(self, nbytes: int, label: str = "") -> int:
        """See Device."""
        memory = ctypes.create_string_buffer(max(1, nbytes))
        return self._add(_Buffer(label, ctypes.addressof(memory), nbytes, True, memory))

    def free(self, address: int) -> None:
        """See Device."""
        self.release(address)

    def copy(
        self,
        destination: int,
        source: int,
        nbytes: int,
        direction: str,
        stream: Stream | None = None,
    ) -> None:
        """See Device."""
        self.synchronize()
        if direction != TO_DEVICE:
            source = self._host(source, nbytes)
        if direction != FROM_DEVICE:
            destination = self._host(destination, nbytes)
        ctypes.memmove(destination, source, nbytes)

    def _host(self, address: int, nbytes: int) -> int:
        start, inside = self._find(address)
        if inside + nbytes > self._buffers[start].nbytes:
            raise InputError(f"no buffer contains {nbytes} bytes at 0x{address:x}")
        return self._buffers[start].host + inside

    def _find(self, address: int) -> tuple[int, int]:
        """The buffer that an address is in, and how far."""
        starts = sorted(self._buffers)
        at = bisect_right(starts, address) - 1
        if at < 0 or address - starts[at] >= _STEP:
            raise InputError(f"no buffer contains 1 bytes at 0x{address:x}")
        return starts[at], address - starts[at]

    # -- code

    def load(self, image: Image) -> _Module:
        """See Device."""
        path = Path(self._folder.name, f"image{self._modules}")
        self._modules += 1
        path.write_bytes(image.data)
        return _Module(image, path)

    def launch(
        self,
        function: Function,
        grid: Triple,
        block: Triple,
        packed: bytes,
        shared: int = 0,
        stream: Stream | None = None,
        cluster: Triple | None = None,
    ) -> None:
        """See Device."""
        assert isinstance(function, _Function)
        if cluster:
            raise UsageError(f"{self.name} launches no clusters that a kernel does not say")
        arguments, pointers = bytearray(packed), list[tuple[int, int]]()
        for argument in function.interface.arguments:
            if argument.kind == POINTER:
                word = slice(argument.offset, argument.offset + 8)
                address = int.from_bytes(packed[word], "little")
                if address:
                    pointers.append((argument.offset, address))
                    arguments[word] = bytes(8)
        made = {
            "kernel": function.interface.name,
            "grid": list(grid),
            "block": list(block),
            "shared": shared,
            "arguments": arguments.hex(),
        }
        if self._waiting and self._waiting[-1][0] is not function.module:
            self.synchronize()
        self._waiting.append((function.module, made, pointers))

    def describe(self, tile: Tile) -> bytes:
        """See Device."""
        raise MissingError(f"{self.name} has no descriptors for copies of tiles")

    def driver_entry(self, functions: Sequence[Function]) -> None:
        """See Device."""

    # -- order

    def stream(self) -> Stream:
        """See Device."""
        return object()

    def event(self, stream: Stream | None = None) -> float:
        """A point in time, by the host's clock."""
        self.synchronize()
        return time.perf_counter()

    def elapsed(self, start: Any, end: Any) -> float:
        """See Device."""
        return end - start

    def synchronize(self, what: object = None) -> None:
        """Runs the command for the launches that wait."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
                self._run(Path(folder), waiting)

    def _run(self, folder: Path, waiting: list[Any]) -> None:
        numbers: dict[int, int] = {}
        launches = []
        for _, launch, pointers in waiting:
            places = []
            for offset, address in pointers:
                start, inside = self._find(address)
                places.append([offset, numbers.setdefault(start, len(numbers)), inside])
            launches.append({**launch, "pointers": places})
        told = []
        for start, number in numbers.items():
            buffer, file = self._buffers[start], f"{number}.bin"
            (folder / file).write_bytes(ctypes.string_at(buffer.host, buffer.nbytes))
            known = {"name": buffer.label, "file": file, "bytes": buffer.nbytes}
            told.append({**known, "writable": buffer.writable})
        request = folder / "request.json"
        document = {"version": VERSION, "target": self.target, "buffers": told}
        request.write_text(json.dumps({**document, "launches": launches}, indent=1) + "\n")
        names = ", ".join(dict.fromkeys(launch["kernel"] for launch in launches))
        self._command([*self._words, str(waiting[0][0].path), str(request)], names)
        for start, number in numbers.items():
            buffer = self._buffers[start]
            if not buffer.writable:
                continue
            content = (folder / f"{number}.bin").read_bytes()
            if len(content) != buffer.nbytes:
                raise Fault(
                    f"{self.name} wrote {len(content)} bytes for {buffer.label}, not"
                    f" {buffer.nbytes}"
                )
            ctypes.memmove(buffer.host, content, buffer.nbytes)

    def _command(self, words: list[str], kernels: str) -> None:
        import sys

        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True)
        except OSError as error:
            raise MissingError(f"{words[0]} can't be run: {error.strerror}") from None
        said = done.stderr.decode(errors="replace")
        if done.returncode == 0:
            sys.stderr.write(said)
            return
        *before, last = said.splitlines() or [f"it ended with status {done.returncode}"]
        for line in before:
            print(line, file=sys.stderr)
        raise Fault(f"kernel {kernels}: {self.name} failed: {last}")

    def close(self) -> None:
        """See Device."""
        self._waiting.clear()
        self._buffers.clear()
        self._folder.cleanup()

"""Code objects in guest memory, and kernels encoded from them."""

from __future__ import annotations

import ctypes
import functools
from contextlib import suppress
from dataclasses import dataclass, field

from fly_common.errors import InputError
from fly_image import dwarf as lines
from fly_image.amd.code_object import CodeObject, Kernel
from fly_image.dwarf import LineTable
from fly_target import registry
from fly_target.target import Target

from fly_run.emulator import state
from fly_run.emulator.engine import dispatch
from fly_run.emulator.engine.arena import Arena
from fly_run.emulator.engine.workspace import Workspace
from fly_run.emulator.isa.decode import Code
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.lowering import denormals, matrix
from fly_run.emulator.lowering.encode import Encoder, Program
from fly_run.emulator.lowering.registers import Constants, Registers
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.small_float import FP16_OVFL
from fly_run.emulator.watch.observe import Observer, Watch

Triple = tuple[int, int, int]


@dataclass
class Prepared:
    """A kernel ready to run: its micro-ops, and what they need of a wave state.

    `programs` grows when control reaches code that nothing in the kernel points to. `code_map` has
    a micro-op's address for each dword of code, 0 where none is decoded. `watch` is what observers
    have in the micro-ops.
    """

    kernel: Kernel
    loaded: Loaded
    encoder: Encoder
    programs: list[Program]
    code_map: ctypes.Array[ctypes.c_uint64]
    watch: Watch
    arena_version: int = -1
    _workspace: tuple[object, Workspace] | None = None

    def workspace(self, arena: Arena, grid: Triple, block: Triple, lds: int) -> Workspace:
        """The memory of launches in this shape. The last shape's is kept."""
        key = grid, block, lds
        if self._workspace is None or self._workspace[0] != key:
            if self._workspace is not None:
                self._workspace[1].close()
            self._workspace = key, Workspace(self, arena, grid, block, lds)
        return self._workspace[1]

    @property
    def mnemonics(self) -> set[str]:
        """What the code that is known so far consists of."""
        return {one.mnemonic for program in self.programs for one in program.instructions}

    @property
    def target(self) -> Target:
        return registry.find(self.loaded.target)

    @property
    def code(self) -> Code:
        return self.loaded.code_of(self.kernel.wavefront_size)

    @property
    def constants(self) -> Constants:
        return self.encoder.registers.constants

    def add_code(self, pc: int) -> Program:
        """Decodes and encodes what control can reach from `pc`. InputError where no code is, or
        where an instruction is unsupported."""
        reachable = self.code.reachable(pc)
        program = self.encoder.encode(reachable, f"kernel {self.kernel.name}")
        self.programs.append(program)
        for address in program.addresses:
            index = (address - self.loaded.low) // 4
            if self.code_map[index] == 0:
                self.code_map[index] = program.address_of(address)
        return program

    def add_pointers(self) -> None:
        """Decodes and encodes what the code object's pointers lead to, since this kernel calls
        through registers. Most of them are other kernels' business: a function that wants more
        registers than this kernel has, or an unsupported instruction, is left out, and is a fault
        only when control does get there."""
        for pc in self.code.pointers:
            if self.code_map[(pc - self.loaded.low) // 4] == 0:
                with suppress(InputError):
                    self.add_code(pc)

    def instruction_at(self, op: int) -> Instruction | None:
        """The instruction of the micro-op at host address `op`."""
        for program in self.programs:
            if program.holds(op):
                return program.instruction_at(op)
        return None


@dataclass
class Loaded:
    """A code object in guest memory. `base` is what is added to its own addresses; its code takes
    `size` bytes from `low` on."""

    code_object: CodeObject
    base: int
    low: int
    size: int
    memory: list[ctypes.Array[ctypes.c_char]]
    _prepared: dict[str, Prepared] = field(default_factory=dict)
    _code: dict[int, Code] = field(default_factory=dict)

    @staticmethod
    def load(code: CodeObject, arena: Arena, number: int) -> Loaded:
        """Maps the segments, each in memory of its own, and relocates them. One guest range holds
        them all, at their own distances, which pc-relative code relies on."""
        segments = [segment for segment in code.segments if segment.size]
        executable = code.executable()
        if not executable:
            raise InputError("the code object has no code")
        base = arena.reserve(max(segment.address + segment.size for segment in segments))
        memory = []
        for index, segment in enumerate(segments):
            host = ctypes.create_string_buffer(segment.size)
            host[: len(segment.data)] = segment.data
            for relocation in code.relocations:
                if segment.holds(relocation.address, 8):
                    place = relocation.address - segment.address
                    word = ctypes.c_uint64.from_buffer(host, place)
                    word.value = (relocation.value + base) & 0xFFFF_FFFF_FFFF_FFFF
            memory.append(host)
            kind = "code" if segment.executable else "data" if segment.writable else "constants"
            arena.map(
                f"{kind} of the code object {number}.{index}",
                base + segment.address,
                ctypes.addressof(host),
                segment.size,
                segment.writable and not segment.executable,
            )
        low = min(segment.address for segment in executable)
        size = max(segment.address + segment.size for segment in executable) - low
        return Loaded(code, base, low, size, memory)

    @property
    def target(self) -> str:
        return self.code_object.target

    def code_of(self, wave_size: int) -> Code:
        """The code as waves of this size read it: functions are for one size each."""
        if wave_size not in self._code:
            self._code[wave_size] = Code(self.code_object, wave_size)
        return self._code[wave_size]

    @functools.cached_property
    def lines(self) -> LineTable:
        """The source lines of the code, read when somebody asks."""
        return lines.table_of(self.code_object.data)

    def prepare(
        self,
        kernel: Kernel,
        handlers: dict[str, int],
        null_region: int,
        observers: tuple[Observer, ...] = (),
        mfma: str = "exact",
    ) -> Prepared:
        """The kernel's micro-ops, with what `observers` want among them, and matrix instructions in
        this arithmetic: made once."""
        prepared = self._prepared.get(kernel.name)
        if prepared is not None:
            return prepared
        target = registry.find(self.target)
        if kernel.wavefront_size not in target.wave_sizes:
            raise InputError(
                f"{kernel.name} is for waves of {kernel.wavefront_size}: {self.target} has none"
            )
        allocation = dispatch.allocation(kernel, target)
        # A literal takes at least 8 bytes of code; inline constants, permutations' tables and the
        # encoder's own constants come on top.
        room = self.size + (64 << 10)
        constants = Constants(state.VGPR + allocation.rows * state.ROW, room)
        mode = dispatch.mode_register(kernel, target)
        single, double = dispatch.control_words(mode)
        operations = table.operations_of(self.target)
        watch = Watch(observers, operations, self.target)
        encoder = Encoder(
            Registers(allocation, constants, target, kernel.wavefront_size),
            operations,
            handlers,
            null_region,
            split_modes=single != double,
            flush_halves=denormals.flushes(double),
            hold_halves=bool(mode & FP16_OVFL),
            weave=watch.weave if observers else None,
            mfma=mfma,
            modes_vary=single != matrix.IEEE_CONTROL,
        )
        code_map = (ctypes.c_uint64 * (self.size // 4 + 1))()
        prepared = Prepared(kernel, self, encoder, [], code_map, watch)
        prepared.add_code(dispatch.entry_address(kernel))
        if "s_swappc_b64" in prepared.mnemonics:
            prepared.add_pointers()
        self._prepared[kernel.name] = prepared
        return prepared

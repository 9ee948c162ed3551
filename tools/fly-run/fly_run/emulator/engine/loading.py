"""Loads code objects into guest memory and encodes their kernels."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from fly_common.errors import InputError
from fly_image.amd.code_object import CodeObject, Kernel
from fly_target import registry
from fly_target.target import Target

from fly_run.devices.host_variables import HostVariable
from fly_run.devices.options import Options
from fly_run.emulator import state
from fly_run.emulator.engine import dispatch
from fly_run.emulator.engine.arena import CODE_AT, Arena, Buffers, Region
from fly_run.emulator.isa.decode import Code
from fly_run.emulator.isa.instruction import SWAP_PC, Instruction
from fly_run.emulator.isa.kinds import kind
from fly_run.emulator.lowering import denormals
from fly_run.emulator.lowering.encode import Encoder, Program
from fly_run.emulator.lowering.matrix import mfma
from fly_run.emulator.lowering.registers import Constants, Registers
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.small_float import FP16_OVFL
from fly_run.emulator.watch.observe import Watch


@dataclass(eq=False)
class Prepared:
    """A kernel ready to run: its micro-ops, and the constants and registers they use. The
    emulator's `devices.protocol.Function`.

    `programs` grows when control reaches code that nothing in the kernel refers to. `code_map` has
    a micro-op's address for each dword of code, 0 if none is decoded. `watch` is the observers'
    part of the micro-ops. `multiplies` tells whether there are matrix instructions.
    """

    kernel: Kernel
    loaded: Loaded
    encoder: Encoder
    programs: list[Program]
    code_map: ctypes.Array[ctypes.c_uint64]
    watch: Watch
    multiplies: bool = False

    @property
    def interface(self) -> Kernel:
        return self.kernel

    @property
    def module(self) -> Loaded:
        return self.loaded

    @property
    def mnemonics(self) -> set[str]:
        """The mnemonics in the code that has been decoded so far."""
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
        """Decodes and encodes the code reachable from `pc`. InputError if there is no code, or if
        an instruction is unsupported."""
        reachable = self.code.reachable(pc)
        program = self.encoder.encode(reachable, f"kernel {self.kernel.name}")
        self.programs.append(program)
        self.multiplies |= any(kind(one.mnemonic) == "matrix" for one in program.instructions)
        for address in program.addresses:
            index = (address - self.loaded.low) // 4
            if self.code_map[index] == 0:
                self.code_map[index] = program.address_of(address)
        return program

    def add_pointers(self) -> None:
        """Decodes and encodes the targets of the code object's pointers, because this kernel makes
        indirect calls. Most targets belong to other kernels: a function that needs more registers
        than this kernel has, or an unsupported instruction, is left out, and faults only if control
        reaches it."""
        for pc in self.code.pointers:
            if self.code_map[(pc - self.loaded.low) // 4] == 0:
                with suppress(InputError):
                    self.add_code(pc)

    def instruction_at(self, op: int) -> Instruction | None:
        """Returns the instruction of the micro-op at host address `op`."""
        for program in self.programs:
            if program.holds(op):
                return program.instruction_at(op)
        return None


@dataclass(eq=False)
class Loaded:
    """A code object in guest memory: the emulator's `devices.protocol.Module`. `base` is added to
    the code object's addresses; its code takes `size` bytes from `low` on. `handlers`, `options`
    and the lock `busy` are the device's; `forget` is called when the module is unloaded."""

    code_object: CodeObject
    base: int
    low: int
    size: int
    memory: list[ctypes.Array[ctypes.c_char]]
    arena: Arena
    handlers: dict[str, int]
    options: Options
    busy: threading.RLock
    forget: Callable[[Loaded], None]
    _prepared: dict[str, Prepared] = field(default_factory=dict)
    _code: dict[int, Code] = field(default_factory=dict)

    @staticmethod
    def load(
        code: CodeObject,
        buffers: Buffers,
        handlers: dict[str, int],
        options: Options,
        busy: threading.RLock,
        forget: Callable[[Loaded], None],
    ) -> Loaded:
        """Maps the segments, each to its own memory, and relocates them. One guest range contains
        them all at their original distances, as pc-relative code requires."""
        segments = [segment for segment in code.segments if segment.size]
        executable = code.executable()
        if code.kernels and not executable:
            raise InputError("the code object has no code")
        base = CODE_AT
        memory, regions = [], []
        for index, segment in enumerate(segments):
            host = ctypes.create_string_buffer(segment.size)
            host[: len(segment.data)] = segment.data
            for relocation in code.relocations:
                if segment.holds(relocation.address, 8):
                    place = relocation.address - segment.address
                    word = ctypes.c_uint64.from_buffer(host, place)
                    word.value = (relocation.value + base) & 0xFFFF_FFFF_FFFF_FFFF
            memory.append(host)
            what = "code" if segment.executable else "data" if segment.writable else "constants"
            name = f"{what} of the code object (segment {index})"
            writable = segment.writable and not segment.executable
            at, address = base + segment.address, ctypes.addressof(host)
            regions.append(Region(name, at, segment.size, address, writable))
        # A host program that launches no kernel is loaded too: it has no code.
        low = min((segment.address for segment in executable), default=0)
        end = max((segment.address + segment.size for segment in executable), default=0)
        size = end - low
        arena = Arena(buffers, regions)
        return Loaded(code, base, low, size, memory, arena, handlers, options, busy, forget)

    @property
    def image(self) -> CodeObject:
        return self.code_object

    def variable(self, name: str) -> HostVariable | None:
        """See Module."""
        symbol = self.code_object.symbols.get(name)
        if symbol is None or not symbol.bind or not symbol.section:
            return None
        segments = [segment for segment in self.code_object.segments if segment.size]
        for segment, memory in zip(segments, self.memory, strict=True):
            offset = symbol.value - segment.address
            if offset >= 0 and offset + symbol.size <= segment.size and not segment.executable:
                host = ctypes.addressof(memory) + offset
                return HostVariable(name, self.base + symbol.value, symbol.size, host, self)
        return None

    def unload(self) -> None:
        """See Module."""
        with self.busy:
            self.forget(self)
            self._prepared.clear()

    @property
    def target(self) -> str:
        return self.code_object.target

    def code_of(self, wave_size: int) -> Code:
        """Returns the code for waves of this size; a function is compiled for one size."""
        if wave_size not in self._code:
            self._code[wave_size] = Code(self.code_object, wave_size)
        return self._code[wave_size]

    def function(self, name: str | None) -> Prepared:
        """See Module. InputError for code with unsupported instructions."""
        prepared = self._prepared.get(name or "")
        if prepared is not None:
            return prepared
        with self.busy:
            kernel = self.code_object.kernel(name)
            if kernel.name not in self._prepared:
                self._prepared[kernel.name] = self._prepare(kernel)
            return self._prepared[kernel.name]

    def _prepare(self, kernel: Kernel) -> Prepared:
        """Encodes the kernel with the observers' micro-ops, and matrix instructions in the
        arithmetic selected by the options."""
        target = registry.find(self.target)
        if kernel.wavefront_size not in target.wave_sizes:
            raise InputError(
                f"{kernel.name} is for waves of {kernel.wavefront_size}: {self.target} has none"
            )
        allocation = dispatch.allocation(kernel, target)
        # A literal takes at least 8 bytes of code; inline constants, permutation tables and the
        # encoder's own constants come on top.
        room = self.size + (64 << 10)
        constants = Constants(state.VGPR + allocation.rows * state.ROW, room)
        mode = dispatch.mode_register(kernel, target)
        single, double = dispatch.control_words(mode)
        operations = table.operations_of(self.target)
        watch = Watch(self.options.observers, operations, self.target)
        registers = Registers(allocation, constants, target, kernel.wavefront_size)
        if self.options.observers:
            registers.name_all()  # observers may write to any register
        encoder = Encoder(
            registers,
            operations,
            self.handlers,
            self.arena.null_region,
            split_modes=single != double,
            flush_halves=denormals.flushes(double),
            hold_halves=bool(mode & FP16_OVFL),
            weave=watch.weave if self.options.observers else None,
            mfma=self.options.mfma,
            modes_vary=single != mfma.IEEE_CONTROL,
        )
        code_map = (ctypes.c_uint64 * (self.size // 4 + 1))()
        prepared = Prepared(kernel, self, encoder, [], code_map, watch)
        prepared.add_code(dispatch.entry_address(kernel, prepared.target))
        if not prepared.mnemonics.isdisjoint(SWAP_PC):
            prepared.add_pointers()
        return prepared

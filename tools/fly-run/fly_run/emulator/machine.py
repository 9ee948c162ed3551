"""The emulator as a device: code objects are loaded, kernels launched, faults raised.

Emulator.launch
    load the code object (once): its segments at guest addresses of their own
    encode the kernel (once): decode, lower, refuse what no handler does
    set up the launch: registers, arguments, slots for resident workgroups
    run the grid in slices, so that progress, Ctrl-C and the instruction limit get a look
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fly_common.code_object import CodeObject, Kernel
from fly_common.errors import Fault, InputError, MissingError, UsageError

from fly_run.emulator import dispatch, faults, library, state
from fly_run.emulator.arena import Arena
from fly_run.emulator.decode import Code
from fly_run.emulator.encode import Encoder, Program
from fly_run.emulator.registers import Constants, Registers
from fly_run.emulator.semantics import table

TARGETS = ("gfx90a", "gfx942", "gfx950")
LDS_BYTES = {"gfx90a": 64 << 10, "gfx942": 64 << 10, "gfx950": 160 << 10}
MOST_WAVES = 16  # 1024 work items
QUANTUM = 1 << 16  # instructions a wave runs before the next one's turn
FIRST_SLICE, SLICE = 1 << 21, 1 << 25  # instructions between two looks by Python
SLOT_MEMORY = 256 << 20  # bytes that resident workgroups may take together
MOST_SLOTS = 256
DYNAMIC_STACK = 16 << 10  # bytes a lane more, where the compiler can't tell the stack's depth
FOREVER = (1 << 62) - 1

Triple = tuple[int, int, int]
Progress = Callable[[int, int], None]


@dataclass
class Loaded:
    """A code object in guest memory. `base` is added to its addresses; `code_map` has a micro-op
    address for each dword of code from `low` on."""

    code: Code
    base: int
    low: int
    size: int
    memory: list[ctypes.Array[ctypes.c_char]]
    prepared: dict[str, Prepared] = field(default_factory=dict)


@dataclass
class Prepared:
    """A kernel ready to run: its micro-ops, and what they need of a wave state. `programs` grows
    when control reaches code that nothing in the kernel points to."""

    kernel: Kernel
    encoder: Encoder
    programs: list[Program]
    code_map: ctypes.Array[ctypes.c_uint64]
    arena_version: int = -1

    @property
    def constants(self) -> Constants:
        return self.encoder.registers.constants


@dataclass(frozen=True)
class Stats:
    """One launch: what ran, and how long it took (wall-clock seconds)."""

    kernel: str
    workgroups: int
    instructions: int
    seconds: float


class Emulator:
    """Runs AMD GPU machine code of `target` on the host processor. Its results have not been
    compared with hardware."""

    name = "emulator"

    def __init__(
        self,
        target: str,
        *,
        max_instructions: int | None = None,
        progress: Progress | None = None,
    ):
        if target not in TARGETS:
            raise MissingError(
                f"the emulator does not run {target}", hint=f"it runs {', '.join(TARGETS)}"
            )
        if max_instructions is not None and max_instructions < 1:
            raise UsageError("the limit of instructions must be at least 1")
        self.target = target
        self.max_instructions = max_instructions
        self.progress = progress
        self.launches: list[Stats] = []
        self._library = library.load()
        self._arena = Arena()
        self._loaded: dict[int, tuple[CodeObject, Loaded]] = {}
        self._queue = ctypes.create_string_buffer(dispatch.queue(), dispatch.QUEUE_BYTES)
        self._executed = 0

    @property
    def instructions(self) -> int:
        """Wave instructions executed so far, by all launches."""
        return self._executed

    def bind(self, name: str, host: int, nbytes: int, writable: bool) -> int:
        """See Device. A buffer bound again under its name replaces the old one."""
        return self._arena.bind(name, host, nbytes, writable)

    def synchronize(self) -> None:
        """Launches are complete when they return."""

    def close(self) -> None:
        self._loaded.clear()

    # -- loading

    def _load(self, code: CodeObject) -> Loaded:
        known = self._loaded.get(id(code))
        if known is not None:
            return known[1]
        if code.target != self.target:
            raise InputError(
                f"the code object is for {code.target}, the emulator was made for {self.target}",
                hint=f"compile with --target {self.target}",
            )
        segments = [segment for segment in code.segments if segment.size]
        executable = code.executable()
        if not executable:
            raise InputError("the code object has no code")
        end = max(segment.address + segment.size for segment in segments)
        # One guest range for all segments keeps their distances, which pc-relative code relies on.
        number = len(self._loaded)
        base = self._arena.reserve(end)
        memory = []
        for index, segment in enumerate(segments):
            host = ctypes.create_string_buffer(segment.size)
            host[: len(segment.data)] = segment.data
            for relocation in code.relocations:
                if segment.holds(relocation.address, 8):
                    value = (relocation.value + base) & 0xFFFF_FFFF_FFFF_FFFF
                    ctypes.c_uint64.from_buffer(
                        host, relocation.address - segment.address
                    ).value = value
            memory.append(host)
            kind = "code" if segment.executable else "data" if segment.writable else "constants"
            self._arena.map(
                f"{kind} of the code object {number}.{index}",
                base + segment.address,
                ctypes.addressof(host),
                segment.size,
                segment.writable and not segment.executable,
            )
        low = min(segment.address for segment in executable)
        size = max(segment.address + segment.size for segment in executable) - low
        loaded = Loaded(Code(code), base, low, size, memory)
        self._loaded[id(code)] = code, loaded
        return loaded

    def _prepare(self, loaded: Loaded, kernel: Kernel) -> Prepared:
        prepared = loaded.prepared.get(kernel.name)
        if prepared is None:
            if kernel.wavefront_size != state.LANES:
                raise InputError(
                    f"{kernel.name} is for waves of {kernel.wavefront_size}, the emulator has"
                    f" waves of {state.LANES}"
                )
            allocation = dispatch.allocation(kernel)
            # A literal takes at least 8 bytes of code, a permutation's table 256; inline constants
            # and the encoder's own come on top.
            constants = Constants(
                state.VGPR + allocation.rows * state.ROW, loaded.size + (64 << 10)
            )
            mode = dispatch.mode_register(kernel)
            single, double = _control_words(mode)
            encoder = Encoder(
                Registers(allocation, constants),
                table.operations(),
                self._library.handlers,
                self._arena.null_region,
                split_modes=single != double,
            )
            code_map = (ctypes.c_uint64 * (loaded.size // 4 + 1))()
            prepared = Prepared(kernel, encoder, [], code_map)
            self._add_code(loaded, prepared, dispatch.entry_address(kernel))
            loaded.prepared[kernel.name] = prepared
        return prepared

    def _add_code(self, loaded: Loaded, prepared: Prepared, pc: int) -> Program:
        """Decodes and encodes what control can reach from `pc`."""
        name = prepared.kernel.name
        program = prepared.encoder.encode(loaded.code.reachable(pc), f"kernel {name}")
        prepared.programs.append(program)
        for address in program.addresses:
            index = (address - loaded.low) // 4
            if prepared.code_map[index] == 0:
                prepared.code_map[index] = program.address_of(address)
        return program

    # -- launching

    def launch(
        self,
        code: CodeObject,
        kernel: str,
        grid: Triple,
        block: Triple,
        kernarg: bytes,
        dynamic_lds: int,
    ) -> None:
        """See Device. Raises Fault for what the kernel does wrong, InputError for code that the
        emulator does not have all instructions for."""
        found = code.kernel(kernel)
        _check_shape(found, grid, block)
        lds = found.group_segment_fixed_size + dynamic_lds
        if lds > LDS_BYTES[self.target]:
            raise InputError(
                f"{found.name} wants {lds} bytes of LDS, {self.target} has"
                f" {LDS_BYTES[self.target]} for a workgroup"
            )
        groups = grid[0] * grid[1] * grid[2]
        if groups == 0:
            return
        loaded = self._load(code)
        prepared = self._prepare(loaded, found)
        start = time.perf_counter()
        launch = Launch(self, loaded, prepared, grid, block, kernarg, lds)
        try:
            launch.run()
        finally:
            self._executed += launch.executed
        self.launches.append(
            Stats(found.name, groups, launch.executed, time.perf_counter() - start)
        )


def _control_words(mode: int) -> tuple[int, int]:
    return (
        dispatch.control_word(mode, mode >> 4),
        dispatch.control_word(mode >> 2, mode >> 6),
    )


def _check_shape(kernel: Kernel, grid: Triple, block: Triple) -> None:
    items = block[0] * block[1] * block[2]
    if min(block) < 1 or items > MOST_WAVES * state.LANES or min(grid) < 0:
        raise UsageError(f"grid {grid} of blocks {block} can't be launched")
    if kernel.max_flat_workgroup_size and items > kernel.max_flat_workgroup_size:
        raise InputError(
            f"{kernel.name} was compiled for at most {kernel.max_flat_workgroup_size} work items"
            f" a workgroup, the block has {items}"
        )
    if max(grid) >= 1 << 32:
        raise UsageError(f"grid {grid} has more than 2^32 - 1 workgroups along an axis")


class Launch:
    """One launch in progress: its memory, and the loop that runs it."""

    def __init__(
        self,
        device: Emulator,
        loaded: Loaded,
        prepared: Prepared,
        grid: Triple,
        block: Triple,
        kernarg: bytes,
        lds: int,
    ):
        self._device, self._loaded, self._prepared = device, loaded, prepared
        self._arena, kernel = device._arena, prepared.kernel
        self._grid, self._lds = grid, lds
        self._groups = grid[0] * grid[1] * grid[2]
        self._scratch = _round_up(kernel.private_segment_fixed_size, 16)
        if kernel.uses_dynamic_stack:
            self._scratch += DYNAMIC_STACK
        queue_address = self._arena.bind(
            "the queue", ctypes.addressof(device._queue), dispatch.QUEUE_BYTES, False
        )
        filled = dispatch.fill_hidden(kernel, kernarg, grid, block, lds, queue_address)
        self._kernarg = ctypes.create_string_buffer(filled, max(1, len(filled)))
        kernarg_address = self._arena.bind(
            "the kernel's arguments", ctypes.addressof(self._kernarg), len(filled), False
        )
        descriptor = loaded.base + kernel.descriptor
        sizes = self._scratch, lds
        data = dispatch.packet(grid, block, *sizes, descriptor, kernarg_address)
        self._packet = ctypes.create_string_buffer(data, len(data))
        packet_address = self._arena.bind(
            "the dispatch packet", ctypes.addressof(self._packet), len(data), False
        )
        start = dispatch.scalar_registers(
            kernel, filled, kernarg_address, packet_address, queue_address
        )
        ids, masks = dispatch.work_items(block)
        self._waves = len(masks) // 8
        self._ids, self._ids_at = _aligned(len(ids))
        ctypes.memmove(self._ids_at, ids, len(ids))
        self._masks = ctypes.create_string_buffer(masks, len(masks))
        self._make_template(start)
        self._make_slots()
        self._make_context(start)

    def _make_template(self, start: dispatch.Start) -> None:
        """The wave state that every wave starts as a copy of."""
        constants = self._prepared.constants
        self._constants_end = constants.base + _round_up(constants.capacity, 64)
        self._template, self._template_at = _aligned(self._constants_end)
        for number, value in enumerate(start.sgprs):
            ctypes.c_uint32.from_address(self._template_at + 4 * number).value = value
        mode = dispatch.mode_register(self._prepared.kernel)
        single, double = _control_words(mode)
        limit = state.VGPR + self._prepared.encoder.registers.allocation.vector * state.ROW
        for offset, value in (
            (state.MODE, mode),
            (state.MXCSR_SINGLE, single),
            (state.MXCSR_DOUBLE, double),
            (state.VGPR_LIMIT, limit),
        ):
            ctypes.c_uint32.from_address(self._template_at + offset).value = value
        self._copied_constants = 0
        self._copy_constants([self._template_at])

    def _copy_constants(self, waves: list[int]) -> None:
        """Brings the constants in the wave states at these addresses up to date."""
        constants = self._prepared.constants
        data = bytes(constants.data)
        for wave in waves:
            ctypes.memmove(wave + constants.base, data, len(data))
        self._copied_constants = len(data)

    def _make_slots(self) -> None:
        """Memory for resident workgroups: reserved, and only used where a workgroup gets there."""
        self._wave_stride = self._constants_end
        self._lds_offset = state.SLOT_HEADER + self._waves * self._wave_stride
        self._scratch_offset = self._lds_offset + _round_up(self._lds, 64)
        scratch = self._waves * state.LANES * self._scratch
        # A page of its own between slots: a host prefetch or a masked move stays inside.
        self._slot_stride = _round_up(self._scratch_offset + scratch + 64, 4096)
        most = max(1, SLOT_MEMORY // self._slot_stride)
        self._slots = min(self._groups, most, MOST_SLOTS)
        self._memory = mmap.mmap(-1, self._slots * self._slot_stride)
        self._slot_base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    def _make_context(self, start: dispatch.Start) -> None:
        arena, constants = self._arena, self._prepared.constants
        limit = self._device.max_instructions
        self._limit = FOREVER if limit is None else limit
        self._context = ctypes.create_string_buffer(state.CTX.size)
        x, y, z = start.groups
        entry = dispatch.entry_address(self._prepared.kernel)
        values = {
            "regions": arena.table,
            "region_count": len(arena),
            "load_base": self._loaded.base,
            "code_low": self._loaded.base + self._loaded.low,
            "code_bytes": self._loaded.size,
            "code_map": ctypes.addressof(self._prepared.code_map),
            "end_group": self._groups,
            "grid_x": self._grid[0],
            "grid_y": self._grid[1],
            "waves": self._waves,
            "slots": self._slots,
            "slot_base": self._slot_base,
            "slot_stride": self._slot_stride,
            "wave_stride": self._wave_stride,
            "lds_offset": self._lds_offset,
            "lds_size": self._lds,
            "scratch_offset": self._scratch_offset,
            "scratch_size": self._scratch,
            "entry": self._prepared.programs[0].address_of(entry),
            "quantum": min(QUANTUM, self._limit),
            "limit": self._limit,
            "template": self._template_at,
            "template_constants": constants.base,
            "template_constants_size": _round_up(max(64, len(constants.data)), 64),
            "ids": self._ids_at,
            "masks": ctypes.addressof(self._masks),
            "group_x_sgpr": x,
            "group_y_sgpr": y,
            "group_z_sgpr": z,
            "vgpr_bytes": self._prepared.encoder.registers.allocation.rows * state.ROW,
        }
        for name, value in values.items():
            self._set(name, value)
        if self._prepared.arena_version != arena.version:
            for program in self._prepared.programs:
                program.forget_regions()
            self._prepared.arena_version = arena.version

    def _set(self, name: str, value: int) -> None:
        offset = getattr(state.CTX, name)
        ctypes.c_uint64.from_buffer(self._context, offset).value = value

    def _get(self, name: str) -> int:
        offset = getattr(state.CTX, name)
        return ctypes.c_uint64.from_buffer(self._context, offset).value

    @property
    def executed(self) -> int:
        return self._get("executed")

    def run(self) -> None:
        run, context = self._device._library.run, ctypes.addressof(self._context)
        length = FIRST_SLICE
        while True:
            self._set("slice_end", self.executed + length)
            # The call lets other Python threads run; a signal's handler runs when it returns.
            result = run(context)
            if result == state.RUN_FAULT:
                self._attend()
            elif result == state.RUN_TIMEOUT:
                raise self._timeout()
            if self._device.progress is not None:
                self._device.progress(self._get("done_groups"), self._groups)
            if result == state.RUN_DONE:
                return
            length = SLICE

    def _attend(self) -> None:
        """Looks after the wave that stopped: new code to decode, or a fault."""
        wave = self._get("stopped_wave")
        record = faults.Record.read(wave)
        status = ctypes.c_uint32.from_address(wave + state.STATUS)
        op = ctypes.c_uint64.from_address(wave + state.OP)
        instruction = self._instruction(op.value)
        kernel = self._prepared.kernel
        if status.value != state.STATUS_DECODE:
            raise faults.describe(
                record, kernel.name, instruction, self._arena, self._lds, self._scratch
            )
        pc = record.address - self._loaded.base
        try:
            if pc % 4:
                raise InputError(f"pc 0x{pc:x} is no multiple of 4")
            program = self._device._add_code(self._loaded, self._prepared, pc)
        except InputError as error:
            where = faults.place(kernel.name, instruction, record.group, record.wave)
            raise Fault(
                f"jump to 0x{record.address:x}: {error.message}; {where}", hint=error.hint
            ) from None
        self._copy_constants([self._template_at, *self._prepared_waves()])
        size = _round_up(max(64, self._copied_constants), 64)
        self._set("template_constants_size", size)
        op.value = program.address_of(pc)
        landing = ctypes.c_uint64.from_address(wave + state.LANDING)
        landing.value = ctypes.c_uint32.from_address(op.value + state.OP_INDEX).value
        status.value = state.STATUS_READY

    def _instruction(self, op: int):
        for program in self._prepared.programs:
            if program.holds(op):
                return program.instruction_at(op)
        return None

    def _prepared_waves(self) -> list[int]:
        """The wave states that constants have been copied to already."""
        found = []
        for slot in range(self._slots):
            base = self._slot_base + slot * self._slot_stride
            if ctypes.c_uint64.from_address(base + state.SLOT_PREPARED).value:
                first = base + state.SLOT_HEADER
                found += [first + wave * self._wave_stride for wave in range(self._waves)]
        return found

    def _timeout(self) -> Fault:
        """Names a wave that has not ended, and how many wait for it."""
        spinning = waiting = None
        count = 0
        for wave in self._prepared_waves():
            status = ctypes.c_uint32.from_address(wave + state.STATUS).value
            if status == state.STATUS_READY:
                spinning = spinning or wave
            elif status == state.STATUS_BARRIER:
                waiting, count = wave, count + 1
        wave = spinning or waiting
        where = f"kernel {self._prepared.kernel.name}"
        if wave is not None:
            record = faults.Record.read(wave)
            op = ctypes.c_uint64.from_address(wave + state.OP).value
            where = faults.place(
                self._prepared.kernel.name, self._instruction(op), record.group, record.wave
            )
        waits = f"; {count} waves wait at a barrier" if count else ""
        return Fault(
            f"timeout: {self.executed} wave-instructions executed, the limit is {self._limit};"
            f" {where}{waits}",
            hint="raise --max-instructions if the kernel is only long",
        )


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _aligned(size: int) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """Zeroed memory that starts on a cache line: the owner, and the address."""
    memory = ctypes.create_string_buffer(size + 64)
    address = ctypes.addressof(memory)
    return memory, address + -address % 64

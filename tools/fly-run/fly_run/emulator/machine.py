"""The emulator as a device: code objects are loaded, kernels launched, faults raised.

Emulator.launch
    load the code object (once): its segments at guest addresses of their own      loading
    encode the kernel (once): decode, lower, refuse what no handler does            encode
    set up the launch: registers, arguments, slots for resident workgroups         dispatch, launch
    run the grid in slices, so that progress, Ctrl-C and the instruction limit get a look
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, replace

from fly_common.errors import InputError, MissingError, UsageError
from fly_image.amd.code_object import CodeObject, Kernel
from fly_target import registry

from fly_run.device import MFMA, Options
from fly_run.emulator.engine import library
from fly_run.emulator.engine.arena import Arena
from fly_run.emulator.engine.launch import run
from fly_run.emulator.engine.loading import Loaded
from fly_run.emulator.isa import matrix
from fly_run.emulator.isa.kinds import kind

STRICT = "FLY_STRICT"  # in the environment: what --strict is on the command line
MOST_WORK_ITEMS = 1024  # of a workgroup

Triple = tuple[int, int, int]


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

    def __init__(self, target: str, options: Options | None = None):
        options = options or Options()
        row = registry.get(target)
        if row is None or not row.emulated:
            raise MissingError(
                f"the emulator does not run {target}",
                hint=f"it runs {', '.join(registry.EMULATED)}",
            )
        if options.max_instructions is not None and options.max_instructions < 1:
            raise UsageError("the limit of instructions must be at least 1")
        if options.threads is not None and options.threads < 1:
            raise UsageError("the number of threads must be at least 1")
        if options.mfma not in MFMA:
            raise UsageError(
                f"{options.mfma} is no arithmetic of matrix instructions",
                hint=f"there are {' and '.join(MFMA)}",
            )
        if options.strict or os.environ.get(STRICT, "0") not in ("", "0"):
            from fly_run.emulator.strict.strict import Strict

            options = replace(options, observers=(*options.observers, Strict()))
        self.target = target
        self.options = options
        self.launches: list[Stats] = []
        self._library = library.load()
        self._arena = Arena()
        self._loaded: dict[int, tuple[CodeObject, Loaded]] = {}
        self._executed = 0
        self._multiplies = False
        self._busy = threading.Lock()  # launches share registers' memory: one at a time

    @property
    def instructions(self) -> int:
        """Wave instructions executed so far, by all launches."""
        return self._executed

    @property
    def remarks(self) -> tuple[str, ...]:
        """How matrix instructions were computed, where a kernel had some."""
        return (matrix.remark(self.target, self.options.mfma),) if self._multiplies else ()

    def bind(self, name: str, host: int, nbytes: int, writable: bool) -> int:
        """See Device. A buffer bound again under its name replaces the old one."""
        return self._arena.bind(name, host, nbytes, writable)

    def synchronize(self) -> None:
        """Launches are complete when they return."""

    def close(self) -> None:
        self._loaded.clear()

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
        lds = found.group_segment_fixed_size + dynamic_lds
        self._check(found, grid, block, lds)
        groups = grid[0] * grid[1] * grid[2]
        if groups == 0:
            return
        loaded = self._load(code)
        prepared = loaded.prepare(
            found,
            self._library.handlers,
            self._arena.null_region,
            self.options.observers,
            self.options.mfma,
        )
        self._multiplies |= any(kind(name) == "matrix" for name in prepared.mnemonics)
        start = time.perf_counter()
        with self._busy:
            space = prepared.workspace(self._arena, grid, block, lds)
            if self.options.observers:
                prepared.watch.begin(space.described(grid, block))
            try:
                run(space, self._library.run, kernarg, self.options)
            finally:
                executed = space.executed
                self._executed += executed
                prepared.watch.end(executed)
        seconds = time.perf_counter() - start
        self.launches.append(Stats(found.name, groups, executed, seconds))

    def _load(self, code: CodeObject) -> Loaded:
        known = self._loaded.get(id(code))
        if known is not None:
            return known[1]
        if code.target != self.target:
            raise InputError(
                f"the code object is for {code.target}, the emulator was made for {self.target}",
                hint=f"compile with --target {self.target}",
            )
        loaded = Loaded.load(code, self._arena, len(self._loaded))
        # The code object is kept, so that its identity stays its own.
        self._loaded[id(code)] = code, loaded
        return loaded

    def _check(self, kernel: Kernel, grid: Triple, block: Triple, lds: int) -> None:
        items = block[0] * block[1] * block[2]
        if min(block) < 1 or items > MOST_WORK_ITEMS or min(grid) < 0:
            raise UsageError(f"grid {grid} of blocks {block} can't be launched")
        if max(grid) >= 1 << 32:
            raise UsageError(f"grid {grid} has more than 2^32 - 1 workgroups along an axis")
        if kernel.max_flat_workgroup_size and items > kernel.max_flat_workgroup_size:
            raise InputError(
                f"{kernel.name} was compiled for at most {kernel.max_flat_workgroup_size} work"
                f" items a workgroup, the block has {items}"
            )
        most = registry.find(self.target).lds
        if lds > most:
            raise InputError(
                f"{kernel.name} wants {lds} bytes of LDS, {self.target} has {most} for a workgroup"
            )

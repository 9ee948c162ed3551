"""What `--strict` checks of clusters of workgroups: signals of their barrier, and multicasts.

A multicast has a mask of workgroups of the cluster, which is 0 outside of one. Every workgroup of
the mask is expected to make the same request, and each gets what it has asked for at its own place
in LDS; hardware waits for late ones, but not for long (public summaries of the CDNA5 ISA manual,
10.7 and 10.11; FlyDSL's programs; rocjitsu's `cluster_lds_multicast.h`, where an earlier version
copies what one has asked for to all workgroups of the mask). What else a mask may mean is not said,
so these are rejected: a mask without the workgroup itself or with workgroups that are not there,
and a request that not all workgroups of its mask have made by the end of the cluster.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Instruction
from fly_run.emulator.strict import tensor
from fly_run.emulator.strict.accesses import Values
from fly_run.emulator.strict.dataflow import Effect
from fly_run.emulator.strict.ordering import Barrier
from fly_run.emulator.strict.reports import Reports
from fly_run.emulator.strict.tensor import MASK, Request
from fly_run.emulator.strict.undefined.shadow import Shadow, Use
from fly_run.emulator.watch.observe import Launch, WaveView

BARRIER = 0xFFFD  # -3 in 16 bits
MASKED = "cluster_load_"
TENSOR = "fly_tensor_copy"

Triple = tuple[int, int, int]


@dataclass
class Cluster:
    """A cluster of `size` workgroups that has started. Its barrier was complete `phase` times;
    `arrived` are the workgroups that have signalled since. `requests` has how often each workgroup
    has made a request, and `made_by` the instruction of the first one."""

    size: int
    phase: int = 0
    arrived: set[int] = field(default_factory=set)
    requests: dict[Request, Counter[int]] = field(default_factory=dict)
    made_by: dict[Request, Instruction] = field(default_factory=dict)
    ended: int = 0
    barrier: Barrier = field(default_factory=Barrier)

    def signal(self, rank: int) -> bool:
        """Records a signal of workgroup `rank`. False if it has signalled in this phase already."""
        if rank in self.arrived:
            return False
        self.arrived.add(rank)
        if len(self.arrived) == self.size:
            self.arrived.clear()
            self.phase += 1
        return True

    def wrong_mask(self, mask: int, rank: int) -> str | None:
        """Returns what is wrong with the mask of a request of workgroup `rank`."""
        if self.size == 1:
            return "is not 0 outside of a cluster"
        if mask >> self.size:
            return f"names workgroups beyond the {self.size} of the cluster"
        if not mask >> rank & 1:
            return f"does not name the workgroup itself, number {rank} of the cluster"
        return None

    def request(self, made: Request, rank: int, instruction: Instruction) -> None:
        self.requests.setdefault(made, Counter())[rank] += 1
        self.made_by.setdefault(made, instruction)

    def unanswered(self) -> tuple[Request, int, int] | None:
        """Returns a request that not all workgroups of its mask have made equally often, one that
        has made it, and one that has not or less often."""
        for made, times in self.requests.items():
            ranks = [rank for rank in range(self.size) if made.mask >> rank & 1]
            most = max(ranks, key=lambda rank, times=times: times[rank])
            least = min(ranks, key=lambda rank, times=times: times[rank])
            if times[most] != times[least]:
                return made, most, least
        return None


class Clusters:
    """The clusters of a launch that have started and not ended."""

    def __init__(self, launch: Launch, report: Reports):
        self._launch, self._report = launch, report
        self._size = math.prod(launch.cluster)
        self._waves = self._size * -(-math.prod(launch.block) // launch.lanes)
        self._found: dict[Triple, Cluster] = {}

    def of(self, workgroup: Triple) -> tuple[Cluster, int]:
        """Returns a workgroup's cluster, and its number there."""
        dims = self._launch.cluster
        x, y, z = (at // size for at, size in zip(workgroup, dims, strict=True))
        i, j, k = (at % size for at, size in zip(workgroup, dims, strict=True))
        cluster = self._found.setdefault((x, y, z), Cluster(self._size))
        return cluster, i + dims[0] * (j + dims[1] * k)

    def signal(self, wave: WaveView, cluster: Cluster, rank: int, instruction: Instruction) -> None:
        """Records a signal of the barrier of the cluster by its workgroup `rank`."""
        if self._size > 1 and not cluster.signal(rank):
            message = (
                f"workgroup {rank} of the cluster signals the cluster's barrier again before it is"
                " complete: the barrier counts signals, not workgroups"
            )
            raise self._report.fault(wave, instruction, message, "one wave of a workgroup signals")

    def check(
        self,
        wave: WaveView,
        cluster: Cluster,
        rank: int,
        instruction: Instruction,
        made: Request,
        shadow: Shadow,
    ) -> None:
        """Records a request."""
        if instruction.mnemonic.startswith(MASKED) and shadow.bits[state.M0 // 4]:
            use = Use("which workgroups a load serves", None, state.M0)
            raise self._report.uninitialised(wave, instruction, use)
        if not made.mask:
            return
        wrong = cluster.wrong_mask(made.mask, rank)
        if wrong is not None:
            message = f"the mask of a multicast, 0x{made.mask:x}, {wrong}"
            hint = "a mask has a bit for each workgroup of the cluster that makes this request"
            raise self._report.fault(wave, instruction, message, hint)
        cluster.request(made, rank, instruction)

    def end(self, wave: WaveView, cluster: Cluster, instruction: Instruction) -> None:
        """Records that a wave ends. With the last one, every multicast must have been asked for by
        all workgroups of its mask."""
        cluster.ended += 1
        if cluster.ended < self._waves:
            return
        self._found = {at: one for at, one in self._found.items() if one is not cluster}
        found = cluster.unanswered()
        if found is None:
            return
        made, most, least = found
        by = self._report.instruction_text(cluster.made_by[made])
        message = (
            f"a multicast with the mask 0x{made.mask:x} that workgroup {most} of the cluster asks"
            f" for, but workgroup {least} does not, or less often: {by}"
        )
        hint = "every workgroup of a mask must make the same request"
        raise self._report.fault(wave, instruction, message, hint)


def is_barrier(instruction: Instruction) -> bool:
    """Whether the operand of a signal or a wait is the cluster's barrier."""
    operands = instruction.operands
    if not operands or not isinstance(operands[0], Immediate):
        return False
    return operands[0].value & 0xFFFF == BARRIER


def asked(
    instruction: Instruction, effects: tuple[Effect, ...], values: Values, active: np.ndarray
) -> Request | None:
    """Returns the request of a load whose mask is in M0, or of a tensor data move; None for other
    instructions. The mask 0 asks for no multicast."""
    name = instruction.mnemonic
    if effects and effects[-1].operation.mnemonic == TENSOR:
        return tensor.multicast(effects[-1].step, values, name)
    if not name.startswith(MASKED):
        return None
    mask = (values.word(state.M0) or 0) & MASK
    found = [str(instruction.operands).encode(), active.tobytes()]
    for effect in effects:
        for place in effect.reads:
            if place.role != "address":
                continue
            lanes = values.lanes(place)
            if lanes is not None:
                found.append(lanes[active].tobytes() if place.lanes else lanes.tobytes())
    return Request(name, mask, tuple(found))

"""`NvidiaFacts`: the properties that only NVIDIA's chips have."""

from __future__ import annotations

from fly_common.record import record

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from fly_target.target import Target


@record
class NvidiaFacts:
    """`capability` is the compute capability, as (major, minor). Sizes are in bytes.

    A multiprocessor runs at most `blocks` blocks and `warps` warps at a time. It has `registers`
    registers of 32 bits, of which a thread uses at most `thread_registers`, and `shared` bytes of
    shared memory, from which each block takes `reserved_shared` besides its own. Variables of
    shared memory in a module take at most `static_shared` together; a launch may ask for more
    dynamic shared memory, up to `Target.lds`. `architecture_specific`: the target includes the
    instructions of this compute capability alone (the suffix "a").
    """

    capability: tuple[int, int]
    blocks: int
    warps: int
    shared: int
    registers: int = 64 << 10
    thread_registers: int = 255
    static_shared: int = 48 << 10
    reserved_shared: int = 1 << 10
    architecture_specific: bool = False

    @property
    def traits(self) -> set[str]:
        """`sm_80+` and so on for each compute capability up to the chip's own; `sm_90a` for the
        instructions that later chips lack."""
        major, minor = self.capability
        number = 10 * major + minor
        words = {f"sm_{known}+" for known in CAPABILITIES if known <= number}
        return words | ({f"sm_{number}a"} if self.architecture_specific else set())


# The compute capabilities that differ in what this compiler uses.
CAPABILITIES = (80, 86, 89, 90, 100)


def nvidia_facts_of(target: Target) -> NvidiaFacts:
    """Returns the facts of a target that is known to be NVIDIA's."""
    assert target.nvidia is not None, f"{target.name} is none of NVIDIA's chips"
    return target.nvidia

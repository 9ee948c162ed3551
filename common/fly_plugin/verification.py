"""Checks what holds at a slot of LLVM IR, objects or images (--verify-slots). fly-opt-py checks
MLIR by a pass, `fly-verify-slot`; LLVM's machine verifier checks MIR."""

from __future__ import annotations

from fly_common import artifact
from fly_common.errors import InputError

from fly_plugin.slots import IMAGE, LLVM, OBJECT, Slot

_KINDS = {
    LLVM: (artifact.LLVM_IR, artifact.BITCODE),
    OBJECT: (artifact.OBJECT, artifact.PTX),
    IMAGE: (artifact.HSACO, artifact.CUBIN, artifact.PTX),
}


def verify(slot: Slot, data: bytes, where: str) -> None:
    """Raises InputError if `data` is not what the slot holds, or not valid LLVM IR."""
    kinds = _KINDS.get(slot.holds)
    if kinds is None:
        return
    found = artifact.identify(data)
    if found not in kinds:
        wanted = " or ".join(kind.noun for kind in kinds)
        raise InputError(f"{where}: the slot holds {wanted}, not {found.noun}")
    if slot.holds != LLVM:
        return
    from fly_common.programs import toolchain

    done = toolchain.run_program("opt", ["-passes=verify", "-disable-output", "-"], data)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise InputError(
            f"{where}: LLVM's verifier: {lines[0]}", hint="\n  ".join(lines[1:8]) or None
        )

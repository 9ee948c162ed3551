"""Passes on LLVM IR within llc that generate wrong code for some modules, and modules for which
they don't.

Whether such a pass strikes shows in its input, which llc's earlier passes make. A module whose text
shows that it can't, as that of most kernels does, is compiled as it is. For another one, llc runs
once more up to the pass, while the ordinary run goes on. Only where the pass would strike, its
input is changed, and code generation starts again with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fly_common.errors import InputError, Place
from fly_common.record import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_common.programs.process import Running

    from fly_llc.codegen.source import Source


@record
class IRDefect:
    """A defect of LLVM that shows before a pass, which is the defect's own or a later one that
    leaves what strikes alone. `fixed` is the first major version of LLVM whose releases all have
    the correction, None if none is known; `issue` is where the defect is described, `culprit` names
    what generates the wrong code if that is not `ir_pass`.

    `possible` refers to a function of the module's text, which returns False only if the pass can't
    strike. `mended` refers to one of the module's text before the pass, which returns the text of a
    module that means the same and for which LLVM is right, or None if the defect does not strike.
    """

    ir_pass: str
    fixed: int | None
    issue: str
    possible: str
    mended: str
    culprit: str = ""


class Search:
    """A run of llc up to the pass of defects, for a module for which they may strike."""

    def __init__(self, source: Source, defects: Sequence[IRDefect], running: Running):
        self.source, self.running = source, running
        self._possible = defects
        self._found: list[IRDefect] = []

    def result(self) -> Source | None:
        """Returns the module for which LLVM is right, for a run from there. None if that is the
        module itself, or if llc fails before."""
        done = self.running.wait()
        text = None if done.returncode else _ir(done.stdout)
        if text is None:
            return None
        for defect in self._possible:
            mended = _resolved(defect.mended)(text)
            if mended is not None:
                text = mended
                self._found.append(defect)
        if not self._found:
            return None
        return replace(self.source, data=text.encode(), ir_pass=self._found[0].ir_pass)

    def end(self) -> None:
        self.running.end()

    def failed(self) -> InputError:
        """Returns the error that llc can't compile the result."""
        defect = self._found[0]
        fixed = f"LLVM {defect.fixed} has the correction of" if defect.fixed else "the defect is in"
        return InputError(
            f"LLVM's {defect.culprit or defect.ir_pass} generates wrong code for this module, and "
            "llc can't compile it otherwise",
            place=Place(self.source.name),
            hint=f"{fixed} {defect.issue}",
        )


def search(source: Source, start: Callable[[str], Running]) -> Search | None:
    """Starts the search for the defects that the module's text does not exclude. `start` starts llc
    for the module with another option."""
    from fly_common import artifact

    from fly_llc.codegen import defects, points

    if source.resume is not None or source.ir_pass is not None:
        return None
    is_text = artifact.identify(source.data) != artifact.BITCODE
    text = source.data.decode(errors="replace") if is_text else ""
    possible = [
        defect
        for defect in points.code_generation(source.target.cpu).ir_defects
        if not is_text or _resolved(defect.possible)(text)
    ]
    possible = [one for one in possible if not one.fixed or defects.llc_version() < one.fixed]
    if not possible:
        return None
    # All that are known show before the same pass.
    return Search(source, possible, start(f"-stop-before={possible[0].ir_pass}"))


def _ir(mir: bytes) -> str | None:
    """Returns the first of MIR's documents, a module whose lines are indented."""
    found = re.match(r"--- \|\n(.*?)^\.\.\.$", mir.decode(errors="replace"), re.M | re.S)
    return re.sub(r"^  ", "", found[1], flags=re.M) if found else None


def _resolved(reference: str):
    from fly_common.resolve import resolve

    return resolve(reference)

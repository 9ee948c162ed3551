"""Passes on LLVM IR within llc that generate wrong code for some modules, and modules for which
they don't.

Whether such a pass strikes shows in its input, which llc's earlier passes make. A module whose text
shows that it can't, as that of most kernels does, is compiled as it is. For another one, llc runs
once more up to the pass, while the ordinary run goes on. Only where the pass would strike, its
input is changed, and code generation starts again with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fly_common.errors import InputError, Place
from fly_common.record import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_common.programs.process import Running

    from fly_llc.codegen.source import Source


@record
class IRDefect:
    """A pass that generates wrong code. `fixed` is the first major version of LLVM whose releases
    all have the correction, `issue` where the defect is described.

    `possible` refers to a function of the module's text, which returns False only if the pass can't
    strike. `mended` refers to one of the module's text before the pass, which returns the text of a
    module that means the same and for which the pass is right, or None if the pass does not strike.
    """

    ir_pass: str
    fixed: int
    issue: str
    possible: str
    mended: str


class Search:
    """A run of llc up to the pass of a defect, for a module for which the pass may strike."""

    def __init__(self, source: Source, defect: IRDefect, running: Running):
        self.source, self.defect, self.running = source, defect, running

    def result(self) -> Source | None:
        """Returns the module for which the pass is right, for a run from there. None if that is the
        module itself, or if llc fails before."""
        done = self.running.wait()
        text = None if done.returncode else _ir(done.stdout)
        if text is None:
            return None
        mended = _resolved(self.defect.mended)(text)
        if mended is None:
            return None
        return replace(self.source, data=mended.encode(), ir_pass=self.defect.ir_pass)

    def end(self) -> None:
        self.running.end()

    def failed(self) -> InputError:
        """Returns the error that llc can't compile the result."""
        return InputError(
            f"LLVM's {self.defect.ir_pass} generates wrong code for this module, and llc can't "
            "compile it otherwise",
            place=Place(self.source.name),
            hint=f"a later LLVM has the correction of {self.defect.issue}",
        )


def search(source: Source, start: Callable[[str], Running]) -> Search | None:
    """Starts the search for a defect that the module's text does not exclude. `start` starts llc
    for the module with another option."""
    from fly_common import artifact

    from fly_llc.codegen import defects, points

    if source.resume is not None or source.ir_pass is not None:
        return None
    is_text = artifact.identify(source.data) != artifact.BITCODE
    for defect in points.code_generation(source.target.cpu).ir_defects:
        if is_text and not _resolved(defect.possible)(source.data.decode(errors="replace")):
            continue
        if defects.llc_version() < defect.fixed:
            return Search(source, defect, start(f"-stop-before={defect.ir_pass}"))
    return None


def _ir(mir: bytes) -> str | None:
    """Returns the first of MIR's documents, a module whose lines are indented."""
    found = re.match(r"--- \|\n(.*?)^\.\.\.$", mir.decode(errors="replace"), re.M | re.S)
    return re.sub(r"^  ", "", found[1], flags=re.M) if found else None


def _resolved(reference: str):
    from fly_common.resolve import resolve

    return resolve(reference)

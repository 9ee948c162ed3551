"""The winners of one function, from the files that may have them."""

from __future__ import annotations

import os

from fly_common.errors import UsageError

from fly.tune import winners
from fly.tune.config import Setting
from fly.tune.key import Case
from fly.tune.plan import Plan
from fly.tune.winners import Winner


class Library:
    """Files are read when something is looked for, and kept until `forget`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._name = plan.jit.name
        self._read: dict[str, list[Winner]] = {}

    @property
    def named(self) -> str | None:
        """The file that the decorator names."""
        if self._plan.file is None:
            return None
        source = self._source
        folder = os.path.dirname(source) if os.path.isfile(source) else ""
        return os.path.join(os.path.abspath(folder), self._plan.file)

    @property
    def shipped(self) -> str | None:
        """The file beside the function's module."""
        return winners.shipped_path(self._source, self._plan.jit.function.__qualname__)

    @property
    def stored(self) -> str | None:
        """The file in the cache folder, for exactly this code."""
        module = os.path.splitext(os.path.basename(self._source))[0]
        name = self._plan.jit.function.__qualname__
        return winners.stored_path(module, name, self._plan.jit.digest)

    def find(self, case: Case) -> Setting | None:
        """The configuration that won for a case: of this device from any file, else of another
        device. The files are asked in the order named, shipped, stored."""
        paths = [path for path in (self.named, self.shipped, self.stored) if path is not None]
        for exact in (True, False):
            for path in paths:
                found = winners.find(self.winners(path), case, exact)
                if found is not None:
                    setting = winners.setting_for(found, self._plan.settings, path)
                    if setting is not None:
                        return setting
        return None

    def add(self, winner: Winner) -> None:
        """Keeps a winner in the file that the decorator names, else in the cache folder."""
        path = self.named or self.stored
        if path is not None:
            winners.keep(path, self._name, winner)
            self._read.pop(path, None)

    def save(self, path: str | None) -> str:
        """Writes all that is known to a file, the shipped one for None. Returns its path."""
        made = path or self.shipped
        if made is None:
            raise UsageError(
                f"{self._name} is in no file that winners could be beside",
                hint="name one: save('…/kernel.tuned.json')",
            )
        known: dict[str, Winner] = {}
        for one in (self.stored, self.shipped, self.named):  # the first to be asked comes last
            known.update((winner.case.text, winner) for winner in self.winners(one))
        if not known:
            raise UsageError(
                f"{self._name} has no winners to save", hint=f"tune it first: {self._name}.tune(…)"
            )
        winners.write(made, self._name, list(known.values()))
        self.forget()
        return made

    def winners(self, path: str | None) -> list[Winner]:
        if path is None:
            return []
        if path not in self._read:
            self._read[path] = winners.read(path, self._name)
        return self._read[path]

    def forget(self) -> None:
        """Has the files read again."""
        self._read.clear()

    @property
    def _source(self) -> str:
        return self._plan.jit.function.__code__.co_filename

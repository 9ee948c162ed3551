"""The backend's device: the emulator, which counts its launches."""

from __future__ import annotations

from typing import Any

from fly_run.emulator.machine import Emulator


class CountingEmulator(Emulator):
    name = "template"
    launches = 0

    def launch(self, *arguments: Any, **named: Any) -> None:
        super().launch(*arguments, **named)
        self.launches += 1

    def describe(self, tile: Any) -> bytes:
        raise NotImplementedError

    def driver_entry(self, functions: Any) -> None:
        """Native code would launch without `launch`, and the launches would not be counted."""
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        return (*super().remarks, f"template: {self.launches} launches")

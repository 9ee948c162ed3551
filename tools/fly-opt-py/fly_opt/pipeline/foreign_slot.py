"""Passes of plugins at a slot of another stage."""

from __future__ import annotations

from fly_opt.pipeline.options import Options
from fly_opt.pipeline.plugins import at_slot
from fly_opt.pipeline.stage import run
from fly_opt.pipeline.text import ROOT, Nest
from fly_opt.reporting.observer import Observer


def run_text(text: str, slot: str, name: str) -> str:
    """Runs what the active plugins have at an MLIR slot on a module's text; `name` is its name in
    messages. Locations are kept if there are any."""
    elements = at_slot(slot)
    if not elements:
        return text
    options = Options(locations=" loc(" in text)
    return run(text.encode(), Nest(ROOT, elements), options, name, Observer()).decode()

"""Plugins in a pipeline: their passes at its slots.

A plugin gives a pipeline's text for a slot (`fly_plugin.contents`). It is parsed and spliced into
the backend's pipeline, so that what runs is one pipeline, which can be printed and run again by
itself. Passes of this module's making are written like others:

    fly-set-plugins{made=hello@0.1.0}        stamps the module
    fly-external-filter{command="…"}         runs a program on the module's text
    fly-verify-slot{slot=opt.end}            checks what holds at a slot (--verify-slots)
"""

from __future__ import annotations

import os

from fly_common.errors import UsageError
from fly_plugin import VERIFY, active, contents, slots, stamps
from fly_plugin.contents import Seat
from fly_plugin.manifest import Command

from fly_opt.lowering.interface import SLOT
from fly_opt.pipeline.text import ROOT, Nest, Step, parse

Elements = tuple[Step | Nest, ...]


def spliced(fragments: tuple[str, ...], name: str) -> Nest:
    """Returns the pipeline of these fragments, with what the active plugins have at its slots.
    UsageError for a plugin at a slot that the pipeline `name` lacks."""
    here = [one.removeprefix(SLOT) for one in fragments if one.startswith(SLOT)]
    for one in active():
        for slot in slots.SLOTS:
            if slot.name in one.plugin.slots and _is_ours(slot) and slot.name not in here:
                raise UsageError(
                    f"{one.named} is at the slot {slot.name}, which the pipeline {name} lacks",
                    hint=f"its slots are {', '.join(here) or 'none'}",
                )
    elements: list[Step | Nest] = []
    stamped = False
    for fragment in fragments:
        if not fragment.startswith(SLOT):
            elements += parse(fragment).elements
            continue
        if not stamped:  # at the first slot: the module's target is set
            elements.append(_stamp())
            stamped = True
        elements += at_slot(fragment.removeprefix(SLOT))
    return Nest(ROOT, tuple(elements))


def _is_ours(slot: slots.Slot) -> bool:
    return slot.stage == slots.OPT and slot.is_mlir


def _stamp() -> Step:
    given = {"made": stamps.of_active(), "later": stamps.of_later(), "linked": stamps.of_linked()}
    options = (f"{name}={','.join(found)}" for name, found in given.items() if found)
    return Step("fly-set-plugins", " ".join(options))


def at_slot(name: str) -> Elements:
    """Returns what the active plugins have at an MLIR slot."""
    verifies = bool(os.environ.get(VERIFY))
    found: list[Step | Nest] = []
    for seat in contents.seats(name):
        if verifies and not found:
            found.append(Step("fly-verify-slot", f"slot={name}"))
        found += _segment(seat)
        if verifies:
            found.append(_owned(Step("fly-verify-slot", f"slot={name}"), seat))
    return tuple(found)


def _segment(seat: Seat) -> Elements:
    if isinstance(seat.content, Command):
        import shlex

        contents.find_program(seat.content, seat.named)
        words = shlex.join(seat.content.words)
        if '"' in words:
            raise UsageError(f"{seat.named}: a command's words can't contain quotation marks")
        step = Step("fly-external-filter", f'command="{words}"')
        return (_owned(step, seat),)
    assert isinstance(seat.content, str)
    try:
        elements = parse(seat.content).elements
    except UsageError as error:
        error.message = f"{seat.named}: {error.message}"
        raise
    return tuple(_owned(element, seat) for element in elements)


def _owned(element: Step | Nest, seat: Seat) -> Step | Nest:
    if isinstance(element, Nest):
        return Nest(element.anchor, tuple(_owned(one, seat) for one in element.elements))
    return Step(element.name, element.options, seat.owner.named, seat.slot.name)


def shown(pipeline: Nest) -> str:
    """Formats a pipeline with the owners of its segments as comments. Passes of plugins are written
    as references, so that the text needs no active plugin."""
    lines: list[str] = []
    before = None
    for element in pipeline.elements:
        first = next(element.steps(), None) if isinstance(element, Nest) else element
        segment = (first.slot, first.owner) if first and first.owner else ("", "fly-opt-py")
        if segment != before:
            lines.append(f"  // {segment[0]}: {segment[1]}" if segment[0] else f"  // {segment[1]}")
            before = segment
        lines.append(f"  {_referred(element)},")
    if pipeline.elements:
        lines[-1] = lines[-1].removesuffix(",")
    lines += [")"]
    for seat in contents.seats("llvm.begin"):
        lines.append(f"// {seat.slot.name}: {seat.owner.named}, a filter of what this prints")
    return "\n".join([f"{pipeline.anchor}(", *lines]) + "\n"


def _referred(element: Step | Nest) -> Step | Nest:
    if isinstance(element, Nest):
        return Nest(element.anchor, tuple(map(_referred, element.elements)))
    for one in active():
        if (reference := one.plugin.passes.get(element.name)) is not None:
            return Step(reference, element.options)
    return element

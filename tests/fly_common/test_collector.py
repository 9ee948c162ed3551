"""Pausing the garbage collector."""

from __future__ import annotations

import gc
import threading

import pytest
from fly_common.collector import collect_young, paused


def test_it_is_off_within_and_on_after():
    assert gc.isenabled()
    with paused():
        assert not gc.isenabled()
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_it():
    with pytest.raises(KeyError), paused():
        raise KeyError
    assert gc.isenabled()


def test_who_has_it_off_keeps_it_off():
    gc.disable()
    try:
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_stays_off_until_the_last_thread_is_done():
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with paused():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with paused():
        thread.start()
        entered.wait()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_what_is_young_is_visited_within_if_asked():
    """Only if Python would have done so."""
    visits = []

    def note(phase: str, info: dict[str, int]) -> None:
        visits.append(info["generation"])

    gc.callbacks.append(note)
    try:
        with paused():
            collect_young()
        assert visits[:2] == [0, 0]
        visits.clear()
        collect_young()
        gc.disable()
        with paused():
            collect_young()
        assert not visits
    finally:
        gc.enable()
        gc.callbacks.remove(note)

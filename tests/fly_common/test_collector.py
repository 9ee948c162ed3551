"""Pausing the garbage collector."""

from __future__ import annotations

import gc
import threading

import pytest
from fly_common.collector import paused


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

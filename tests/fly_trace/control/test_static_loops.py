"""Loops over static ranges that can't be loops of the GPU: what they changed is undone, and Python
iterates. Rows of docs/python.md execute such loops."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from trace_helpers import kernel_source, refusal, trace_body, trace_source


def refused(body: str, folder: Path) -> str:
    return refusal(kernel_source(body), folder)


def test_a_body_that_can_be_a_loops_is_a_loops(tmp_path: Path) -> None:
    text = trace_body("for i in range(3):\n    I[i, 0] = n", tmp_path)
    assert text.count("scf.for") == 1
    assert text.count("fly.memref.store") == 1


def test_what_the_attempt_built_is_gone(tmp_path: Path) -> None:
    text = trace_body(
        """
        rows, seen = [n, n + 1], []
        for i in range(2):
            I[i, 1] = n * 7
            seen.append(rows[i])
        I[0, 0] = len(seen)
        """,
        tmp_path,
    )
    assert "scf.for" not in text
    assert text.count("arith.muli") == 2
    assert text.count("arith.constant 2 : i32") == 2, "the index of the last store, and a length"


def test_shared_memory_is_allocated_once_for_each_iteration(tmp_path: Path) -> None:
    body = """
        memories = []
        for i in range(2):
            memory = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 64, 16]).peek()
            memory[n] = i
            memories.append(memory)
        I[0, 0] = memories[0][n] + memories[1][n]
        """
    unrolled = trace_body(body.replace("range(2)", "fx.range_constexpr(2)"), tmp_path)
    assert trace_body(body, tmp_path).count("fly.make_ptr") == unrolled.count("fly.make_ptr") == 2


def test_primitives_share_their_memory(tmp_path: Path) -> None:
    body = """
        sums = []
        for i in range(2):
            sums.append(fx.block.reduce(n + i))
        I[0, 0] = sums[0] + sums[1]
        """
    source = kernel_source(body).replace("block=64", "block=256")
    unrolled = source.replace("range(2)", "fx.range_constexpr(2)")
    counts = [trace_source(one, tmp_path).count("fly.make_ptr") for one in (source, unrolled)]
    assert counts[0] == counts[1] > 0


def test_loops_within_loops(tmp_path: Path) -> None:
    text = trace_body(
        """
        table = [[n + 4 * i + j for j in range(4)] for i in range(4)]
        for i in range(4):
            for j in range(4):
                I[i, j] = table[j][i]
        """,
        tmp_path,
    )
    assert "scf.for" not in text
    assert text.count("fly.memref.store") == 16


def test_the_inner_loop_alone(tmp_path: Path) -> None:
    text = trace_body(
        """
        weights = [n, 2 * n, 3 * n]
        for i in range(8):
            for j in range(3):
                I[i, j] = weights[j]
        """,
        tmp_path,
    )
    assert text.count("scf.for") == 1
    assert text.count("fly.memref.store") == 3


def test_within_a_dynamic_loop_and_branch(tmp_path: Path) -> None:
    text = trace_body(
        """
        weights = [n, 2 * n, 3 * n]
        for i in range(n):
            if i < 8:
                total = 0
                for j in range(3):
                    total += weights[j]
                I[i, 0] = total
        """,
        tmp_path,
    )
    assert text.count("scf.for") == 1
    assert text.count("fly.memref.store") == 1


def test_an_error_of_python_is_the_one_that_is_told(tmp_path: Path) -> None:
    error = refused("items = [n, n]\nfor i in range(3):\n    I[i, 0] = items[i]", tmp_path)
    assert "IndexError: list index out of range" in error


def test_a_retried_branch_allocates_once(tmp_path: Path) -> None:
    text = trace_body(
        """
        def change(items):
            items[0] = n + 1

        items = [n]
        if n > 0:
            memory = fx.shared_array(fx.Int32, 64)
            memory[n] = 1
            change(items)
            I[0, 0] = memory[n]
        I[0, 1] = items[0]
        """,
        tmp_path,
    )
    assert text.count("fly.make_ptr") == 1


def test_an_iterator_goes_on(tmp_path: Path) -> None:
    text = trace_body(
        "items = iter([n, n, n])\nfor i in range(3):\n    I[i, 0] = next(items)", tmp_path
    )
    assert text.count("fly.memref.store") == 3


@pytest.mark.parametrize("head", ["range(65)", "range(2, unroll=2)"])
def test_those_that_stay_loops(head: str, tmp_path: Path) -> None:
    error = refused(f"items = [n] * 65\nfor i in {head}:\n    I[0, 0] = items[i]", tmp_path)
    assert "a dynamic i32 can't index or count in Python" in error
    assert "fx.range_constexpr" in error


def test_iterations_are_limited_in_all(tmp_path: Path) -> None:
    body = """
        items = [n] * 40
        for i in range(40):
            for j in range({}):
                I[0, 0] = items[i] + items[j]
        """
    assert trace_body(body.format(20), tmp_path).count("fly.memref.store") == 800
    assert "can't index or count in Python" in refused(body.format(40), tmp_path)

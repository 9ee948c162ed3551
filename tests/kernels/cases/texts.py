"""Strings: search, edit distance, upper case."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator
LINES = 90


def _text(rng: Random, letters: bytes) -> np.ndarray:
    return rng.choice(np.frombuffer(letters, "u1"), (LINES, 80))


def _search(rng: Random, needle: bytes, letters: bytes, result, block: int = 64) -> Launch:
    text = _text(rng, letters)
    text[0, : len(needle)] = text[1, 80 - len(needle) :] = np.frombuffer(needle, "u1")
    text[2] = needle[0]
    found = np.array([result(line.tobytes(), needle) for line in text], "i4")
    arguments = [text, np.frombuffer(needle, "u1").copy(), np.int32(len(needle))]
    return Launch(
        [*arguments, np.full(LINES, -9, "i4"), np.int32(LINES)],
        **blocks(LINES, block),
        expected={3: found},
    )


def _overlapping(line: bytes, needle: bytes) -> int:
    return sum(line.startswith(needle, i) for i in range(len(line)))


@case("text")
def search_naive(rng: Random) -> Launch:
    return _search(rng, b"aba", b"abc", _overlapping, 40)


@case("text")
def search_kmp(rng: Random) -> Launch:
    return _search(rng, b"aabaaab", b"ab", _overlapping)


@case("text")
def search_horspool(rng: Random) -> Launch:
    return _search(rng, b"\xe4cab", b"abc\xe4", bytes.find)


@case("text")
def levenshtein(rng: Random) -> Launch:
    a, b = (rng.choice(np.frombuffer(b"acgt", "u1"), n) for n in (97, 130))
    last = np.arange(len(b) + 1)
    for i, letter in enumerate(a):
        now = np.concatenate([[i + 1], np.minimum(last[1:] + 1, last[:-1] + (b != letter))])
        for j in range(1, len(now)):
            now[j] = min(now[j], now[j - 1] + 1)
        last = now
    sizes = np.int32(len(a)), np.int32(len(b))
    return Launch(
        [a, b, *sizes, np.zeros(1, "i4")],
        **blocks(len(a), len(a)),
        expected={4: np.array([last[-1]], "i4")},
    )


@case("text")
def upper(rng: Random) -> Launch:
    n = 70
    text = rng.integers(0, 256, n * 16).astype("u1")
    wanted = np.frombuffer(text.tobytes().upper(), "u1")
    out = np.zeros_like(text)
    return Launch([text, out, np.int32(n)], **blocks(n, 32), expected={1: wanted})

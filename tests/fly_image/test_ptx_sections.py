"""Sections in PTX text."""

from __future__ import annotations

import pytest
from fly_common.errors import InputError
from fly_image.nvidia import ptx
from hypothesis import given
from hypothesis import strategies as st

TEXT = ".version 8.8\n.target sm_90a\n"


@given(st.binary(max_size=300), st.text(max_size=100))
def test_what_is_put_in_comes_out(data, words):
    text = ptx.with_section(
        ptx.with_section(TEXT, ".a", data), ".b", words.encode("utf-8", "replace")
    )
    found = ptx.sections(text)
    assert found == {".a": data, ".b": words.encode("utf-8", "replace")}
    code = [line for line in text.split("\n") if not line.startswith("//")]
    assert "\n".join(code) == TEXT


def test_the_form():
    assert ptx.with_section(TEXT, ".fly.manifest", b'{"a":1}\nb') == (
        TEXT + '//.fly.section .fly.manifest text\n//.fly| {"a":1}\n//.fly| b\n//.fly.end\n'
    )
    assert ptx.block(".x", bytes(range(60)))[1:3] == [
        "//.fly| AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4",
        "//.fly| OTo7",
    ]


def test_a_block_among_code_is_found():
    text = f"{TEXT}\t//.fly.section .a text\n\t//.fly| x y\n\t//.fly.end\n.visible .entry k()\n"
    assert ptx.sections(text) == {".a": b"x y"}
    assert ptx.sections(TEXT) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("//.fly.section .a text\n//.fly| x\n", "the section .a of the PTX has no end"),
        ("//.fly.section .a base64\n//.fly| !\n//.fly.end\n", "the section .a of the PTX is dam"),
        ("//.fly.section .a zip\n//.fly.end\n", "the unknown form zip"),
    ],
)
def test_damaged_blocks(text, message):
    with pytest.raises(InputError, match=message):
        ptx.sections(TEXT + text)

"""Images are told by content, and known by their interface alone."""

from pathlib import Path
from types import SimpleNamespace

import fly_image
import pytest
from fly_common.errors import InputError
from fly_common.programs import toolchain
from fly_image import registry
from fly_image.amd.code_object import CodeObject
from fly_image.image import POINTER, SHARED, VALUE
from fly_image.registry import Format


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> bytes:
    """A kernel with local pointers, from the tests of fly_run."""
    source = Path(__file__).parents[1] / "fly_run" / "kernels" / "local.s"
    made, linked = (tmp_path_factory.mktemp("local") / name for name in ("k.o", "k.hsaco"))
    options = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj"]
    for program, words in (
        ("llvm-mc", [*options, str(source), "-o", str(made)]),
        ("ld.lld", ["-shared", str(made), "-o", str(linked)]),
    ):
        assert toolchain.run_program(program, words, None).returncode == 0
    return linked.read_bytes()


def guests(monkeypatch, *formats: Format) -> list[str]:
    """Installs formats as entry points would; the result lists when they are asked for."""
    asked: list[str] = []

    def entry_points(group: str):
        asked.append(group)
        return tuple(SimpleNamespace(name=one.name, load=lambda one=one: one) for one in formats)

    monkeypatch.setattr(registry, "entry_points", entry_points)
    return asked


def test_a_code_object_is_read_and_no_guest_is_asked(local, monkeypatch):
    asked = guests(monkeypatch)
    image = fly_image.read(local)
    assert isinstance(image, CodeObject)
    assert asked == []
    assert (image.target, image.variant, image.program) == ("gfx942", "gfx942", None)
    kernel = image.kernel(None)
    assert [a.kind for a in kernel.arguments] == [SHARED, SHARED, POINTER]
    assert (kernel.shared_bytes, kernel.required_block) == (40, None)
    assert kernel.argument_bytes >= max(a.offset + a.size for a in kernel.arguments)
    assert image.digest == fly_image.read(bytes(bytearray(local))).digest
    assert image.digest != fly_image.read(local + b"\0").digest


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the input is empty"),
        (b"define void @f() {\n", "the input is LLVM IR, not a linked code object"),
        (b"\x7fELF", "the ELF header is truncated: the file has 4 bytes"),
        (b"\x7fELF\2\1\1" + bytes(11) + b"\x3e\0" + bytes(60), "an ELF file for another machine"),
    ],
)
def test_what_is_no_image(data, message):
    with pytest.raises(InputError, match=message) as caught:
        fly_image.read(data, "x.bin")
    assert caught.value.place is not None
    assert caught.value.place.file == "x.bin"


def toy(data: bytes, name: str) -> SimpleNamespace:
    return SimpleNamespace(data=data, name=name)


def test_a_format_from_outside(monkeypatch):
    reader = f"{toy.__module__}:toy"
    monkeypatch.setattr(registry, "resolve", lambda reference: {reader: toy}[reference])
    asked = guests(monkeypatch, Format("toy", lambda data: data[:3] == b"TOY", reader))
    image = fly_image.read(b"TOY 1", "x.toy")
    assert (image.data, image.name) == (b"TOY 1", "x.toy")
    assert asked == ["fly.images"]
    with pytest.raises(InputError, match="is unknown text"):
        fly_image.read(b"TIY 1")


def test_kinds_that_a_launcher_cannot_pass_keep_their_name(local):
    argument = fly_image.read(local).kernel(None).arguments[0]
    odd = type(argument)("s", 0, 8, "sampler", "sampler_t")
    assert (odd.kind, odd.description) == ("sampler", "a sampler (sampler_t)")
    plain = type(argument)("s", 0, 8, "by_value", "struct S")
    assert (plain.kind, plain.description) == (VALUE, "8 bytes by value (struct S)")

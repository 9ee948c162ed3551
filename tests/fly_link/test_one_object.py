"""Linking one object without ld.lld: random objects that llvm-mc assembles, against ld.lld."""

import contextlib
import random
import subprocess

import pytest
from fly_common.errors import InputError
from fly_common.programs import toolchain
from fly_image.elf import Elf
from fly_link import link
from fly_link.backends.amd import in_process, inputs, linker, one_object

CHIPS = ("gfx942", "gfx1100", "gfx90a")


def assembled(source: str, chip: str) -> bytes:
    words = ["-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-filetype=obj", "-"]
    done = subprocess.run(
        [toolchain.find_program("llvm-mc"), *words], input=source.encode(), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def by_lld(data: bytes) -> bytes:
    words = [toolchain.find_program("ld.lld"), *linker.ARGUMENTS]
    return subprocess.run(words, input=data, capture_output=True, check=True).stdout


def own(data: bytes, comment: bytes) -> bytes | None:
    (item,) = inputs.read([data], ["object"])
    return one_object.linked(item, comment)


def comment_of(image: bytes) -> bytes:
    section = Elf.parse(image).section(".comment")
    assert section is not None
    return section.data


def kernels(chosen: random.Random, *, symbols: int | None = None) -> str:
    """The assembly of an object with kernels, a function, tables and memory of any sizes."""
    count = symbols or chosen.choice((1, 1, 2, 3, 5, 8, 12, 20, 40))
    names = [f"{chosen.choice(('k', 'kernel', 'fly_x', '_Z1'))}{n}" for n in range(count)]
    lines = [f".amdhsa_code_object_version {chosen.choice((4, 5, 6))}", ".text"]
    lines.append(f".p2align {chosen.choice((2, 8, 8, 12))}")
    memory = chosen.random() < 0.4
    near = ["memory"] * memory
    if chosen.random() < 0.5:
        lines += [".type helper,@function", "helper:", f".fill {chosen.randrange(1, 50)},4,0"]
        lines += [".size helper, .-helper"]
        near.append("helper")
    for name in names:
        lines += [f".protected {name}", f".globl {name}", ".p2align 8", f".type {name},@function"]
        lines.append(f"{name}:")
        for other in near:
            lines += ["s_getpc_b64 s[0:1]", f"s_add_u32 s0, s0, {other}@rel32@lo+4"]
            lines.append(f"s_addc_u32 s1, s1, {other}@rel32@hi+12")
        lines += [f".fill {chosen.randrange(1, 3000)},4,{chosen.randrange(1 << 31)}"]
        lines += [f".size {name}, .-{name}", f".set {name}.count, {chosen.randrange(500)}"]
        near = [name, *near][:3]
    lines += ['.section .rodata,"a"', f".p2align {chosen.choice((2, 6, 7))}"]
    for name in names:
        lines += [f".globl {name}.kd", f".type {name}.kd,@object", f"{name}.kd:"]
        lines += [".long 1,2,3,4", f".quad {name}-.", ".fill 40,1,7", f".size {name}.kd, 64"]
    lines.append(f".fill {chosen.randrange(5000)},1,3")
    if memory:
        lines += [".protected memory", ".globl memory", ".type memory,@object"]
        lines += ['.section .bss,"aw",@nobits', f".p2align {chosen.choice((0, 4, 8, 12))}"]
        lines += ["memory:", f".zero {chosen.randrange(1, 20000)}", ".size memory, 5"]
    if chosen.random() < 0.8:
        lines += ['.section .fly.table,"",@progbits', f".p2align {chosen.choice((0, 3))}"]
        lines.append(f".fill {chosen.randrange(1, 2000)},1,65")
    lines += ['.section .AMDGPU.gpr_maximums,"",@progbits', '.section .note,"a",@note']
    size = chosen.randrange(1, 900)
    lines += [".p2align 2", f".long 7, {4 * size}, 32", '.asciz "AMDGPU"', ".byte 0"]
    return "\n".join([*lines, f".fill {size},4,9", ""])


def compare(seeds: range) -> None:
    for seed in seeds:
        chosen = random.Random(seed)
        data = assembled(kernels(chosen), chosen.choice(CHIPS))
        image = by_lld(data)
        assert own(data, comment_of(image)) == image, f"seed {seed}"


def test_the_image_is_ld_llds():
    compare(range(6))


@pytest.mark.heavy
def test_images_of_random_objects_are_ld_llds():
    compare(range(100, 200))


PLAIN = kernels(random.Random(1), symbols=2)
OTHERS = {
    "a section with rules of its own": '.section .data,"aw"\n.long 1\n',
    "a section of strings": '.section .debug_str,"MS",@progbits,1\n.asciz "a"\n',
    "two sections with one name": '.section .rodata,"a",@progbits,unique,7\n.long 1\n',
    "a weak symbol": ".text\n.weak other\nother:\n.long 0\n",
    "a weak reference": ".text\n.weak other\n.quad other-.\n",
    "a hidden symbol": ".text\n.globl other\n.hidden other\nother:\n.long 0\n",
    "a common symbol": ".comm other,4,4\n",
    "an absolute address": ".protected other\n.globl other\n.text\nother: .long 0\n"
    '.section .rodata,"a"\n.quad other\n',
    "a distance to a symbol that may be replaced": ".globl other\n.text\nother: .long 0\n"
    '.section .rodata,"a"\n.quad other-.\n',
    "a large alignment": '.section .rodata,"a"\n.p2align 13\n.long 1\n',
}


@pytest.mark.parametrize("more", OTHERS.values(), ids=OTHERS)
def test_other_objects_are_left_to_ld_lld(more):
    data = assembled(PLAIN + more, "gfx942")
    assert own(assembled(PLAIN, "gfx942"), b"Linker: any\0") is not None
    assert own(data, b"Linker: any\0") is None


def test_damaged_objects_never_fail():
    data = assembled(PLAIN, "gfx942")
    chosen = random.Random(0)
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(chosen.randrange(1, 4)):
            damaged[chosen.randrange(len(data))] = chosen.choice((0, 1, 0x7F, 0xFF))
        with contextlib.suppress(InputError):  # of the reader
            own(bytes(damaged), b"Linker: any\0")


@pytest.fixture
def ran(monkeypatch):
    """The programs that are run from here on, as in a new process."""
    found: list[str] = []
    run = toolchain.run_program

    def noted(name, *rest, **more):
        found.append(name)
        return run(name, *rest, **more)

    monkeypatch.setattr(toolchain, "run_program", noted)
    monkeypatch.setattr(in_process, "_comments", {})
    monkeypatch.delenv(in_process.VARIABLE, raising=False)
    return found


def test_the_first_object_is_linked_by_ld_lld(ran):
    one, other = (assembled(kernels(random.Random(n), symbols=n), "gfx942") for n in (2, 3))
    assert not in_process.expected()
    first = link([one])
    assert ran == ["ld.lld"]
    assert in_process.expected()
    assert (link([one]), link([other])) == (first, by_lld(other))
    assert ran == ["ld.lld"]


def test_what_is_not_plain_is_always_linked_by_ld_lld(ran):
    data = assembled(PLAIN + OTHERS["a section with rules of its own"], "gfx942")
    for _ in range(2):
        assert link([assembled(PLAIN, "gfx942")])
        assert link([data]) == by_lld(data)
    assert ran == ["ld.lld"] * 3


def test_all_objects_may_be_left_to_ld_lld(ran, monkeypatch):
    monkeypatch.setenv(in_process.VARIABLE, "0")
    data = assembled(PLAIN, "gfx942")
    assert link([data]) == link([data])
    assert ran == ["ld.lld"] * 2


def test_another_ld_lld_is_not_imitated(ran, monkeypatch):
    monkeypatch.setattr(one_object, "linked", lambda item, comment: b"other bytes")
    data = assembled(PLAIN, "gfx942")
    assert link([data]) == link([data]) == by_lld(data)
    assert ran == ["ld.lld"] * 2


def test_other_versions_are_not_imitated(ran, monkeypatch):
    data = assembled(PLAIN, "gfx942")
    image = by_lld(data).replace(b"LLD 22.1.", b"LLD 23.1.")
    in_process.learn(inputs.read([data], ["object"])[0], image)
    assert not in_process.expected()
    assert link([data]) == by_lld(data)


def test_a_difference_is_an_error_where_images_are_compared(ran, monkeypatch):
    data = assembled(PLAIN, "gfx942")
    link([data])
    monkeypatch.setenv(in_process.VARIABLE, "check")
    assert link([data]) == by_lld(data)
    assert ran == ["ld.lld"] * 2
    monkeypatch.setattr(one_object, "linked", lambda item, comment: b"other bytes")
    with pytest.raises(InputError) as caught:
        link([data])
    assert caught.value.render("fly-link") == (
        "fly-link: error: the image that is linked in process differs from ld.lld's\n"
        "  FLY_LLVM_IN_PROCESS=0 leaves every object to ld.lld"
    )

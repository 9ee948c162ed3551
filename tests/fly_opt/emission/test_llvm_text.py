"""The version bridge: every constant arrives in LLVM 22 bit by bit; nothing else is touched."""

from __future__ import annotations

import random
import re
import struct
from fractions import Fraction

import pytest
from fly_common.errors import InputError
from fly_opt.emission import llvm_text
from fly_opt.emission.llvm_text import bridge, nearest

# MLIR type, bytes, struct code of its bits, the patterns that are special.
TYPES = {
    "f16": (2, "H", [0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0xFD55, 1, 0x3FF, 0x7BFF, 0x8000]),
    "bf16": (2, "H", [0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 0xFFA5, 1, 0x7F, 0x7F7F, 0x8000]),
    "f32": (
        4,
        "I",
        [
            *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFA00000, 0x7FD55555),
            *(0xFFFFFFFF, 1, 0x807FFFFF, 0x7F7FFFFF, 0x3727C5AC, 0x3DCCCCCD, 0x4B800000, 1 << 31),
        ],
    ),
    "f64": (
        8,
        "Q",
        [
            *(0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, (0x7FF0 << 48) + 1, (0xFFF8 << 48) + 0x3F),
            *(1, 0x7FEFFFFFFFFFFFFF, 0x3FB999999999999A, 1 << 63),
        ],
    ),
}


def translated(body: str) -> str:
    """The bindings' own LLVM IR for a module in the LLVM dialect."""
    from fly_dialect.bindings import ir, module

    with ir.Context():
        made = ir.Module.parse(f"module {{ {body} }}")
        return module("_mlir_libs._mlirDialectsLLVM").translate_module_to_llvmir(made.operation)


def read_only_data(llvm, text: str, tmp_path) -> bytes:
    """The bytes of section .rodata that LLVM 22 makes of a module."""
    code = llvm("llc", "-mtriple=amdgcn-amd-amdhsa", "-filetype=obj", "-o", "-", text=text)
    code_file, data_file = tmp_path / "code.o", tmp_path / "data.bin"
    code_file.write_bytes(code)
    llvm("llvm-objcopy", f"--dump-section=.rodata={data_file}", str(code_file), "/dev/null")
    return data_file.read_bytes()


@pytest.mark.parametrize("kind", TYPES)
def test_every_bit_pattern_survives_in_an_array(kind, llvm, tmp_path):
    size, code, special = TYPES[kind]
    source = random.Random(7)
    patterns = [*special, *(source.getrandbits(8 * size) for _ in range(1500))]
    patterns += [pattern & ~(3 << 8 * size - 3) for pattern in patterns]  # many small exponents
    values = ", ".join(f"0x{pattern:0{2 * size}X}" for pattern in patterns)
    shape = f"{len(patterns)}x{kind}"
    text = translated(
        f"llvm.mlir.global constant @values(dense<[{values}]> : tensor<{shape}>)"
        f" : !llvm.array<{len(patterns)} x {kind}>"
    )
    expected = struct.pack(f"<{len(patterns)}{code}", *patterns)
    assert read_only_data(llvm, bridge(text), tmp_path)[: len(expected)] == expected


@pytest.mark.parametrize("kind", TYPES)
def test_without_the_bridge_llvm_22_refuses(kind, llvm):
    """The bridge has work to do: this fails once LLVM's text needs none."""
    size, _, special = TYPES[kind]
    text = translated(
        f"llvm.mlir.global constant @value(0x{special[2]:0{2 * size}X} : {kind}) : {kind}"
    )
    with pytest.raises(AssertionError, match="llvm-as"):
        llvm("llvm-as", "-o", "/dev/null", text=text)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("float f0x3727C5AC", "float 0x3EE4F8B580000000"),
        ("float +inf", "float 0x7FF0000000000000"),
        ("float -inf", "float 0xFFF0000000000000"),
        ("float +qnan", "float 0x7FF8000000000000"),
        ("float -qnan", "float 0xFFF8000000000000"),
        ("float +nan(0x3F)", "float 0x7FF80007E0000000"),
        ("float +snan(0x1)", "float 0x7FF0000020000000"),
        ("float -3.000000e+38", "float 0xC7EC363CC0000000"),
        ("float 1.000000e-01", "float 0x3FB99999A0000000"),
        ("float 5.000000e-01", "float 5.000000e-01"),
        ("float -0.000000e+00", "float -0.000000e+00"),
        ("half 1.001360e-05", "half 0xH00A8"),
        ("half +inf", "half 0xH7C00"),
        ("half -nan(0x1)", "half 0xHFE01"),
        ("half 1.500000e+00", "half 1.500000e+00"),
        ("bfloat 1.000980e-01", "bfloat 0xR3DCD"),
        ("bfloat +qnan", "bfloat 0xR7FC0"),
        ("double 1.000000e-01", "double 1.000000e-01"),
        ("double f0x3FD555555555554F", "double 0x3FD555555555554F"),
        ("double +inf", "double 0x7FF0000000000000"),
        ("double +snan(0x1)", "double 0x7FF0000000000001"),
    ],
)
def test_a_literal(literal, expected, llvm):
    assert bridge(f"@x = constant {literal}\n") == f"@x = constant {expected}\n"
    llvm("llvm-as", "-o", "/dev/null", text=f"@x = constant {expected}\n")


IN_PLACE = """\
%pair = type { float, half }
@array = constant [2 x float] [float -inf, float f0x3727C5AC]
@vector = constant <2 x half> <half +qnan, half 1.001360e-05>
@record = constant { float, double, i32 } { float +inf, double f0x3FD555555555554F, i32 7 }
@nested = constant [1 x %pair] [%pair { float 1.000000e-01, half +inf }]
@splat = constant <4 x bfloat> splat (bfloat 1.000980e-01)

define float @f(float %x, i1 %c, ptr %p) {
entry:
  %sum = fadd float %x, f0x3727C5AC
  %less = fcmp olt float %sum, -inf
  %chosen = select i1 %less, float +inf, float 1.000000e-01
  %low = fptrunc double f0x3FD555555555554F to float
  store <2 x float> <float 1.000000e-01, float +qnan>, ptr %p, align 8
  %old = atomicrmw fadd ptr %p, float 1.000000e-01 monotonic, align 4
  br i1 %c, label %left, label %right
left:
  br label %right
right:
  %joined = phi float [ 1.000000e-01, %entry ], [ -inf, %left ]
  %vector = insertelement <2 x half> <half +inf, half poison>, half 1.001360e-05, i32 1
  %called = call float @g(float %joined, float f0x3727C5AC), !fpmath !0
  ret float %called
}

declare float @g(float, float)

!0 = !{float f0x40200001}
"""


def test_constants_inside_everything(llvm):
    """Aggregates, vectors, operands of every kind of instruction, metadata."""
    with pytest.raises(AssertionError, match="llvm-as"):
        llvm("llvm-as", "-o", "/dev/null", text=IN_PLACE)
    new = bridge(IN_PLACE)
    llvm("llvm-as", "-o", "/dev/null", text=new)
    assert "f0x" not in new
    assert "[ 0x3FB99999A0000000, %entry ], [ 0xFFF0000000000000, %left ]" in new


@pytest.mark.parametrize(
    "text",
    [
        'source_filename = "f0x3727C5AC float -inf"',
        "; float -inf, f0x3727C5AC",
        '@"float +qnan" = constant i32 0',
        '@s = constant [11 x i8] c"float -inf\\00"',
        'attributes #0 = { "float -inf"="f0x3727C5AC" }',
        "%f0x3727C5AC = fadd float %a, %b",
        "%.inf = fadd float %-inf, %+inf.1",
        "@f0x12345678 = global float 0.000000e+00",
        "!f0x12345678 = !{!0}",
        '!0 = !{!"float f0x3727C5AC"}',
        "br label %f0x11",
        "define nofpclass(nan inf) float @f(float nofpclass(qnan ninf) %x)",
        "!1 = !DILocation(line: 1, column: 5, scope: !2)",
        "define double @f1.5e+10()",
    ],
)
def test_what_only_looks_like_a_constant_stays(text):
    text = f"@before = constant float 1.000000e+00\n{text}\n"
    assert bridge(text) == text


def test_module_assembly_becomes_one_line_each(llvm):
    new = bridge('module asm\n    ".ascii \\22a\\22"\n    ".byte 1"\n\n@x = global i32 0\n')
    assert new == ('module asm ".ascii \\22a\\22"\nmodule asm ".byte 1"\n\n@x = global i32 0\n')
    llvm("llvm-as", "-o", "/dev/null", text=new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@x = constant fp128 f0x3FFF8000000000000000000000000000", "f0x3FFF8.* of type fp128"),
        ("@x = constant x86_fp80 +inf", r"\+inf of type x86_fp80"),
        ("@x = constant i32 +qnan", r"\+qnan without a type before it"),
    ],
)
def test_what_has_no_form_is_named(text, message):
    with pytest.raises(InputError, match=message) as caught:
        bridge(f"\n{text}\n")
    assert caught.value.place is not None
    assert caught.value.place.line == 2
    assert caught.value.place.text == text


@pytest.mark.parametrize(("kind", "code", "bits"), [("half", "<e", "<H"), ("float", "<f", "<I")])
def test_rounding_is_the_processors(kind, code, bits):
    """Against struct, which rounds to nearest, ties to even."""
    source = random.Random(3)
    for _ in range(3000):
        value = abs(source.uniform(-1, 1)) * 10 ** source.randint(-12, 4)
        (expected,) = struct.unpack(bits, struct.pack(code, value))
        assert nearest(Fraction(value), kind) == expected


def test_halfway_is_rounded_to_even():
    assert nearest(Fraction(2049), "half") == 0x6800  # between 2048 and 2050
    assert nearest(Fraction(2051), "half") == 0x6802  # between 2050 and 2052
    assert nearest(Fraction(3, 2**25), "half") == 2  # 1.5 of the smallest subnormal
    assert nearest(Fraction(1, 2**25), "half") == 0
    assert nearest(Fraction(65520), "half") == 0x7C00  # half a step past the largest: infinity


@pytest.mark.parametrize("literal", ["9" * 5000 + ".5", "1.0e+9999999999", "1.0e-999999"])
def test_a_decimal_that_takes_for_ever_is_refused(literal):
    with pytest.raises(InputError, match="is too long to be read"):
        bridge(f"@g = global float {literal}\n")


SLOW = re.compile(r"f0x|[-+](?:inf|q?s?nan)|[0-9]\.|^module asm\n", re.MULTILINE)
ASSEMBLY = re.compile(r'module asm\n(?:[ \t]+"[^"]*"\n?)+')


def lines_to_lex(text):
    """With one expression for all, which says it plainly and is slow."""
    end = 0
    for sign in SLOW.finditer(text):
        if sign.start() >= end:
            start = text.rfind("\n", 0, sign.start()) + 1
            assembly = ASSEMBLY.match(text, start)
            line = text.find("\n", sign.start())
            end = assembly.end() if assembly else len(text) if line < 0 else line
            yield start, end


def test_the_lines_with_constants_are_found():
    pieces = ["f0x", "0x3F", "x", "f", "+", "-", "inf", "nan", "qnan", "snan", ".", "1", "9.", "%a"]
    pieces += ["\n", "\n", "\n", " ", "float ", "bb.1", "llvm.", "module asm"]
    pieces += ["\nmodule asm\n", 'module asm\n "a 1.5"\n', ' "b"\n', '\t"2.5 f0x"\n']
    chance = random.Random(1)
    for _ in range(5000):
        text = "".join(chance.choices(pieces, k=chance.randrange(40)))
        assert list(llvm_text._lines(text)) == list(lines_to_lex(text)), text

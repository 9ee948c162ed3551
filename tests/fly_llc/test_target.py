"""Reading the target out of IR text."""

import pytest
from fly_common.errors import InputError
from fly_llc.codegen.target import Target, read_target

TRIPLE = 'target triple = "amdgcn-amd-amdhsa"\n'
GFX942 = Target("amdgcn-amd-amdhsa", "gfx942")


def read(text: str) -> Target:
    return read_target(text, "k.ll")


@pytest.mark.parametrize(
    "text",
    [
        'define void @f() #0 {\n ret void\n}\nattributes #0 = { "target-cpu"="gfx942" }',
        'define void @f() "target-cpu"="gfx942" {\n ret void\n}',
        'define void @f() "target-cpu" = "gfx942" {\n ret void\n}',
        'define void @"a (b"() #0 { ret void }\nattributes #0 = { nounwind "target-cpu"="gfx942" }',
        'define { i32, { i8 } } @f({ i32 } %x, ptr byval({ i8 }) %y)\n  #7\n{\n ret void }\n'
        'attributes #7={"target-cpu"="gfx942"}',
        'define void @f() #0 #1 { ret void }\nattributes #0 = { nounwind }\n'
        'attributes #1 = { "a"="}" "target-cpu"="gfx942" }',
        # Neither of these names a processor for a function that is defined here.
        'declare void @d() #1\ndefine void @f() #0 { ret void }\n'
        'attributes #0 = { "target-cpu"="gfx942" }\nattributes #1 = { "target-cpu"="gfx90a" }',
        '; define void @c() "target-cpu"="gfx90a" {\n'
        '@s = constant [9 x i8] c"; define "\n'
        'define void @f() "target-cpu"="gfx942" { ret void }',
        '@s = constant [40 x i8] c"define void @x() \\22target-cpu\\22 {"\n'
        'define void @f() "target-cpu"="gfx942" { ret void }',
        # A function that names none gets what the others name, as llc -mcpu does it.
        'define void @g() { ret void }\ndefine void @f() "target-cpu"="gfx942" { ret void }',
        # A module without functions names it in a flag.
        '!llvm.module.flags = !{!0, !1}\n!0 = !{i32 1, !"amdhsa_code_object_version", i32 600}\n'
        '!1 = !{i32 1, !"target-cpu", !"gfx942"}',
        '!1 = !{i32 1, !"target-cpu", !"gfx90a"}\n'
        'define void @f() "target-cpu"="gfx942" { ret void }',
    ],
)  # fmt: skip
def test_the_processor_is_found(text):
    assert read(TRIPLE + text) == GFX942
    indented = "\n".join(f"  {line}" for line in (TRIPLE + text).splitlines())
    assert read(f"--- |\n{indented}") == GFX942  # as in a MIR file


def test_a_functions_own_word_wins_over_its_groups():
    text = 'define void @f() "target-cpu"="gfx942" #0 { ret void }\n'
    assert read(f'{TRIPLE}{text}attributes #0 = {{ "target-cpu"="gfx90a" }}').cpu == "gfx942"


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("", ()),
        ("+wavefrontsize64", ()),
        ("+xnack", ("+xnack",)),
        ("-sramecc,+dpp,+xnack", ("+xnack", "-sramecc")),
        ("+xnack,-xnack", ("-xnack",)),
        ("+xnackish", ()),
    ],
)
def test_only_features_of_the_header_are_passed_on(features, expected):
    text = f'define void @f() "target-cpu"="gfx942" "target-features"="{features}" {{ ret void }}'
    assert read(TRIPLE + text).features == expected


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("define void @f() { ret void }", "the module has no target triple", None),
        ('; target triple = "amdgcn-amd-amdhsa"', "the module has no target triple", None),
        (
            'target triple = "spirv64-amd-amdhsa"',
            "the module is for spirv64-amd-amdhsa; fly-llc generates code for amdgcn-amd-amdhsa,"
            " nvptx64-nvidia-cuda",
            None,
        ),
        (TRIPLE, 'no function has "target-cpu"', None),
        (
            TRIPLE + 'module asm "!{i32 1, !\\22target-cpu\\22, !\\22gfx942\\22}"',
            'no function has "target-cpu"',
            None,
        ),
        (TRIPLE + '; !{i32 1, !"target-cpu", !"gfx942"}', 'no function has "target-cpu"', None),
        (TRIPLE + 'declare void @f() "target-cpu"="gfx942"', 'no function has "target-cpu"', None),
        (
            f'{TRIPLE}define void @f() "target-cpu"="gfx942" {{ ret void }}\n'
            'define void @"g h"() "target-cpu"="gfx90a" { ret void }',
            'the functions disagree on their target-cpu: @f has gfx942, @"g h" has gfx90a',
            3,
        ),
    ],
)
def test_refusals(text, message, line):
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.message == message
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == ("k.ll", line)
    assert caught.value.hint


def test_the_reader_is_linear():
    # 10 MB of what a device library's constant tables look like; a quadratic reader takes minutes.
    line = '@t{} = private constant [4 x i8] c"\\01define", align 1\n'
    text = "".join(line.format(n) for n in range(200_000))
    assert read(TRIPLE + text + 'define void @f() "target-cpu"="gfx942" { ret void }') == GFX942

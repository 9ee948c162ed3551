"""The text with expanded aliases is MLIR's own text with `use_local_scope`."""

import os

import pytest
from fly_common.programs import process
from fly_dialect import dialect, text
from fly_dialect.bindings import ir
from fly_dialect.text import location_aliases

FUNCTION = """
func.func @f(%a: i32 loc("a"("k.py":1:7))) -> i32 {{
  %b = arith.addi %a, %a : i32 loc({location})
  {op}
  return %b : i32 loc(unknown)
}} loc("k.py":1:1)
"""
PLACES = {
    "file": '"k.py":2:5',
    "unknown": "unknown",
    "calls": 'callsite(callsite("k.py":2:5 at "k.py":3:1) at "m.py":4:2)',
    "name": '"value"("k.py":2:5)',
    "fused": 'fused["k.py":2:5, "m.py":4:2]',
    "fused-metadata": 'fused<"loc(#loc1)">["k.py":2:5, "m.py":4:2]',
    "fused-location": 'fused<loc("k.py":2:5)>["k.py":2:5, "m.py":4:2]',
    "quotes": r'"a \"b\" #loc1 \\":2:5',
    "not-ascii": '"größe.py":2:5',
}
OPS = {
    "string": 'fly.static {text = "loc(#loc1)"} : !fly.layout<4:1>',
    "attribute": '%c = arith.constant {x = loc(callsite("k.py":2:5 at "k.py":9:9))} 1 : i32',
    # A map gets an alias too, unless the scope is local.
    "map": "%m = memref.alloc() : memref<4x4xf32, affine_map<(i, j) -> (j, i)>>",
}


def local_scope(module: ir.Module) -> str:
    printed = module.operation.get_asm(
        enable_debug_info=True,
        use_local_scope=True,
        use_name_loc_as_prefix=True,
        assume_verified=True,
    )
    return text.from_generic(printed).rstrip("\n") + "\n"


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
@pytest.mark.parametrize("location", PLACES.values(), ids=PLACES)
def test_locations_are_printed_at_the_ops(location: str, op: str) -> None:
    context = dialect.new_context()
    with context, ir.Location.unknown():
        module = text.read(FUNCTION.format(location=location, op=op), context)
        assert text.write(module) == local_scope(module)


def test_a_module_without_locations() -> None:
    context = dialect.new_context()
    with context, ir.Location.unknown():
        module = ir.Module.create()
        assert text.write(module) == local_scope(module)


@pytest.mark.parametrize("lacking", ["memory", "/proc"])
def test_without_a_file_in_memory(lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_memory() -> int:
        if lacking == "memory":
            raise OSError("no memory")
        reader, writer = os.pipe()
        os.close(writer)
        return reader  # nothing can be written to it by its path

    context = dialect.new_context()
    with context, ir.Location.unknown():
        module = text.read(FUNCTION.format(location=PLACES["calls"], op=OPS["string"]), context)
        expected = text.write(module)
        assert expected == local_scope(module)
        monkeypatch.setattr(process, "in_memory", in_memory)
        monkeypatch.setattr(location_aliases.os, "pread", lambda *_: pytest.fail("it was read"))
        monkeypatch.setattr(
            type(module.operation), "print", lambda *_, **__: (_ for _ in ()).throw(ValueError())
        )
        assert text.write(module) == expected


def test_files_in_memory_are_closed() -> None:
    context = dialect.new_context()
    with context, ir.Location.unknown():
        module = ir.Module.create()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            text.write(module)
        assert len(os.listdir("/proc/self/fd")) == before


def test_long_texts_are_whole() -> None:
    context = dialect.new_context()
    with context, ir.Location.unknown():
        lines = "".join(
            f'  %{n} = arith.constant {n} : i32 loc("k.py":{n + 1}:1)\n' for n in range(20000)
        )
        read = f'func.func @f() {{\n{lines}  return loc("k.py":1:1)\n}} loc("k.py":1:1)\n'
        module = text.read(read, context)
        assert text.write(module) == local_scope(module)

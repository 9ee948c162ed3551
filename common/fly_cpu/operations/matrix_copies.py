"""Copies of 8 × 8 matrices between shared memory and registers, by a warp, on the host.

Lanes hand over the addresses of rows, and each reads or writes what it holds of a matrix.

Source: PTX ISA 8.8, "ldmatrix", "stmatrix".
"""

from __future__ import annotations

from collections.abc import Iterator


def _address(matrix: int, trans: bool, part: str) -> str:
    """The address of this lane's part of a matrix: %a.NAME. Lanes have handed over those of rows.
    `part` is the number of the half word, of a transposed matrix."""
    name = f"{matrix}{part}"
    if not trans:
        return f"""  %from.{name} = add i32 %row.4, {8 * matrix}
  %base.{name} = call i64 @fly.heard(i32 %from.{name})
  %a.{name} = add i64 %base.{name}, %within
"""
    return f"""  %from.{name} = add i32 %pair, {8 * matrix + int(part)}
  %base.{name} = call i64 @fly.heard(i32 %from.{name})
  %a.{name} = add i64 %base.{name}, %across
"""


_LANE = """  %at = ptrtoint ptr addrspace(3) %p to i64
  call void @fly.meet(i32 -1, i64 %at, i32 %site)
  %index = load i64, ptr @fly.index
  %index.32 = trunc i64 %index to i32
  %lane = and i32 %index.32, 31
  %row.4 = lshr i32 %lane, 2
  %quarter = and i32 %lane, 3
  %quarter.64 = zext i32 %quarter to i64
  %within = shl i64 %quarter.64, 2
  %pair = shl i32 %quarter, 1
  %row.64 = zext i32 %row.4 to i64
  %across = shl i64 %row.64, 1
"""


def table() -> dict[str, str]:
    """The functions by the intrinsics' names without `llvm.nvvm.`."""
    return dict(_copies())


def _copies() -> Iterator[tuple[str, str]]:
    for count in (1, 2, 4):
        for trans in (False, True):
            dotted = ".trans" if trans else ""
            form = f".sync.aligned.m8n8.x{count}{dotted}.b16.p3"
            yield _load_matrix(f"ldmatrix{form}", count, trans)
            yield _store_matrix(f"stmatrix{form}", count, trans)


def _load_matrix(name: str, count: int, trans: bool) -> tuple[str, str]:
    result = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
    body = _LANE
    for m in range(count):
        if trans:
            for part in "01":
                body += _address(m, True, part)
                body += f"""  call void @fly.read.shared(i64 %a.{m}{part}, i64 2, i64 1, i32 %site)
  %q.{m}{part} = inttoptr i64 %a.{m}{part} to ptr
  %h.{m}{part} = load i16, ptr %q.{m}{part}
  %z.{m}{part} = zext i16 %h.{m}{part} to i32
"""
            body += f"  %up.{m} = shl i32 %z.{m}1, 16\n  %w.{m} = or i32 %up.{m}, %z.{m}0\n"
        else:
            body += _address(m, False, "")
            body += f"""  call void @fly.read.shared(i64 %a.{m}, i64 4, i64 3, i32 %site)
  %q.{m} = inttoptr i64 %a.{m} to ptr
  %w.{m} = load i32, ptr %q.{m}
"""
    # No lane may write again before all have read.
    body += "  call void @fly.meet(i32 -1, i64 0, i32 %site)\n"
    if count == 1:
        body += "  ret i32 %w.0"
    else:
        before = "poison"
        for m in range(count):
            body += f"  %s.{m} = insertvalue {result} {before}, i32 %w.{m}, {m}\n"
            before = f"%s.{m}"
        body += f"  ret {result} {before}"
    head = f"define internal {result} @fly.nvvm.{name}(ptr addrspace(3) %p, i32 %site)"
    return name, f"{head} noinline nounwind {{\n{body}\n}}\n"


def _store_matrix(name: str, count: int, trans: bool) -> tuple[str, str]:
    body = _LANE
    for m in range(count):
        if trans:
            body += f"  %up.{m} = lshr i32 %w.{m}, 16\n"
            for part, source in (("0", f"%w.{m}"), ("1", f"%up.{m}")):
                body += _address(m, True, part)
                body += f"""  call void @fly.write.shared(i64 %a.{m}{part}, i64 2, i64 1, i32 %site)
  %q.{m}{part} = inttoptr i64 %a.{m}{part} to ptr
  %h.{m}{part} = trunc i32 {source} to i16
  store i16 %h.{m}{part}, ptr %q.{m}{part}
"""
        else:
            body += _address(m, False, "")
            body += f"""  call void @fly.write.shared(i64 %a.{m}, i64 4, i64 3, i32 %site)
  %q.{m} = inttoptr i64 %a.{m} to ptr
  store i32 %w.{m}, ptr %q.{m}
"""
    given = "".join(f", i32 %w.{m}" for m in range(count))
    head = f"define internal void @fly.nvvm.{name}(ptr addrspace(3) %p{given}, i32 %site)"
    return name, f"{head} noinline nounwind {{\n{body}  ret void\n}}\n"

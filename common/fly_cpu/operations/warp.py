"""Operations that lanes of a warp, or threads of a block, execute together, as LLVM IR.

A lane hands over its operand, waits for the others (`fly.meet`), and computes its result from
theirs (`fly.heard`). Each function has one more parameter than the intrinsic: the number of the
place in the code (`rewrite.Site`), because all lanes must be at the same one.

Source: PTX ISA 8.8, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "barrier".
"""

from __future__ import annotations

from collections.abc import Iterator

from fly_cpu.state import ACTIVE, expanded

_SHUFFLED = """
; The lane to read from (bits 0 to 4), and whether it is within the segment (bit 5).
define internal i32 @fly.source(i32 %mode, i32 %b, i32 %c) nounwind {
entry:
  %index = load i64, ptr @fly.index
  %index.32 = trunc i64 %index to i32
  %lane = and i32 %index.32, 31
  %delta = and i32 %b, 31
  %clamp = and i32 %c, 31
  %shifted = lshr i32 %c, 8
  %segment = and i32 %shifted, 31
  %outside = xor i32 %segment, 31
  %least = and i32 %lane, %segment
  %rest = and i32 %clamp, %outside
  %most = or i32 %least, %rest
  switch i32 %mode, label %idx [ i32 0, label %up
                                 i32 1, label %down
                                 i32 2, label %bfly ]
up:
  %up.j = sub i32 %lane, %delta
  %up.in = icmp sge i32 %up.j, %most
  br label %select
down:
  %down.j = add i32 %lane, %delta
  %down.in = icmp sle i32 %down.j, %most
  br label %select
bfly:
  %bfly.j = xor i32 %lane, %delta
  %bfly.in = icmp sle i32 %bfly.j, %most
  br label %select
idx:
  %idx.rest = and i32 %delta, %outside
  %idx.j = or i32 %least, %idx.rest
  %idx.in = icmp sle i32 %idx.j, %most
  br label %select
select:
  %j = phi i32 [ %up.j, %up ], [ %down.j, %down ], [ %bfly.j, %bfly ], [ %idx.j, %idx ]
  %in = phi i1 [ %up.in, %up ], [ %down.in, %down ], [ %bfly.in, %bfly ], [ %idx.in, %idx ]
  %from = select i1 %in, i32 %j, i32 %lane
  %flag = select i1 %in, i32 32, i32 0
  %result = or i32 %from, %flag
  ret i32 %result
}
"""

# The lanes of the mask one after another: %k, what it handed over (%value), and %acc → %acc.next.
_LOOP = """
  %present = call i32 @fly.present()
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %next ]
  %acc = phi i64 [ START, %entry ], [ %acc.kept, %next ]
  %shifted = lshr i32 %present, %k
  %member = trunc i32 %shifted to i1
  br i1 %member, label %take, label %next
take:
  %value = call i64 @fly.heard(i32 %k)
BODY
  br label %next
next:
  %acc.kept = phi i64 [ %acc, %loop ], [ %acc.next, %take ]
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, 32
  br i1 %more, label %loop, label %done
done:
"""


def _loop(start: str, body: str) -> str:
    return _LOOP.replace("START", start).replace("BODY", body.strip("\n"))


def _function(name: str, result: str, parameters: str, body: str) -> tuple[str, str]:
    head = f"define internal {result} @fly.nvvm.{name}({parameters}) noinline nounwind {{\nentry:\n"
    return name, f"{head}{body.strip(chr(10))}\n}}\n"


def _shuffles() -> Iterator[tuple[str, str]]:
    for number, mode in enumerate(("up", "down", "bfly", "idx")):
        for kind, letter in (("i32", "i32"), ("float", "f32")):
            bits = "" if kind == "i32" else "  %bits = bitcast float %value to i32\n"
            source = "%value" if kind == "i32" else "%bits"
            body = f"""{bits}  %wide = zext i32 {source} to i64
  call void @fly.meet(i32 %mask, i64 %wide, i32 %site)
  %source = call i32 @fly.source(i32 {number}, i32 %b, i32 %c)
  %lane = and i32 %source, 31
  %heard = call i64 @fly.heard(i32 %lane)
  %narrow = trunc i64 %heard to i32
"""
            last = "%narrow"
            if kind == "float":
                body, last = body + "  %number = bitcast i32 %narrow to float\n", "%number"
            given = f"i32 %mask, {kind} %value, i32 %b, i32 %c, i32 %site"
            plain = f"shfl.sync.{mode}.{letter}"
            yield _function(plain, kind, given, f"{body}  ret {kind} {last}")
            pair = f"{{ {kind}, i1 }}"
            body += f"""  %flag = and i32 %source, 32
  %in = icmp ne i32 %flag, 0
  %pair.0 = insertvalue {pair} poison, {kind} {last}, 0
  %pair.1 = insertvalue {pair} %pair.0, i1 %in, 1
  ret {pair} %pair.1"""
            yield _function(f"{plain}p", pair, given, body)


def _votes() -> Iterator[tuple[str, str]]:
    ballot = """
  %wide = zext i1 %value.given to i64
  call void @fly.meet(i32 %mask, i64 %wide, i32 %site)
""" + _loop(
        "0",
        """
  %k.64 = zext i32 %k to i64
  %bit = shl i64 %value, %k.64
  %acc.next = or i64 %acc, %bit
""",
    )
    ballot += "  %set = trunc i64 %acc.kept to i32\n"
    given = "i32 %mask, i1 %value.given, i32 %site"
    yield _function("vote.ballot.sync", "i32", given, f"{ballot}  ret i32 %set")
    any_of = "  %any = icmp ne i32 %set, 0\n"
    all_of = "  %all = icmp eq i32 %set, %present\n"
    yield _function("vote.any.sync", "i1", given, f"{ballot}{any_of}  ret i1 %any")
    yield _function("vote.all.sync", "i1", given, f"{ballot}{all_of}  ret i1 %all")
    same = f"{ballot}{any_of}{all_of}  %none = xor i1 %any, true\n  %same = or i1 %all, %none\n"
    yield _function("vote.uni.sync", "i1", given, f"{same}  ret i1 %same")


def _matches() -> Iterator[tuple[str, str]]:
    for kind in ("i32", "i64"):
        wide = "" if kind == "i64" else "  %wide = zext i32 %own to i64\n"
        own = "%own" if kind == "i64" else "%wide"
        body = f"{wide}  call void @fly.meet(i32 %mask, i64 {own}, i32 %site)\n" + _loop(
            "0",
            f"""
  %same = icmp eq i64 %value, {own}
  %k.64 = zext i32 %k to i64
  %place = shl i64 1, %k.64
  %bit = select i1 %same, i64 %place, i64 0
  %acc.next = or i64 %acc, %bit
""",
        )
        body += "  %set = trunc i64 %acc.kept to i32\n"
        given = f"i32 %mask, {kind} %own, i32 %site"
        yield _function(f"match.any.sync.{kind}", "i32", given, f"{body}  ret i32 %set")
        body += """  %all = icmp eq i32 %set, %present
  %found = select i1 %all, i32 %set, i32 0
  %pair.0 = insertvalue { i32, i1 } poison, i32 %found, 0
  %pair.1 = insertvalue { i32, i1 } %pair.0, i1 %all, 1
  ret { i32, i1 } %pair.1"""
        yield _function(f"match.all.sync.{kind}p", "{ i32, i1 }", given, body)


def _reductions() -> Iterator[tuple[str, str]]:
    starts = {
        **dict.fromkeys(("add", "or", "xor", "umax"), "0"),
        **dict.fromkeys(("and", "umin"), "4294967295"),
        "min": str((1 << 31) - 1),
        "max": str(1 << 31),
    }
    for name, start in starts.items():
        step = f"  %step = {name} i32 %acc.32, %value.32"
        if name.endswith(("min", "max")):
            kind = name if name.startswith("u") else f"s{name}"
            step = f"  %step = call i32 @llvm.{kind}.i32(i32 %acc.32, i32 %value.32)"
        body = """
  %wide = zext i32 %own to i64
  call void @fly.meet(i32 %mask, i64 %wide, i32 %site)
""" + _loop(
            start,
            f"""
  %acc.32 = trunc i64 %acc to i32
  %value.32 = trunc i64 %value to i32
{step}
  %acc.next = zext i32 %step to i64
""",
        )
        body += "  %result = trunc i64 %acc.kept to i32\n  ret i32 %result"
        yield _function(f"redux.sync.{name}", "i32", "i32 %own, i32 %mask, i32 %site", body)


def _others() -> Iterator[tuple[str, str]]:
    yield _function(
        "elect.sync",
        "{ i32, i1 }",
        "i32 %mask, i32 %site",
        """
  call void @fly.meet(i32 %mask, i64 0, i32 %site)
  %present = call i32 @fly.present()
  %leader = call i32 @llvm.cttz.i32(i32 %present, i1 false)
  %index = load i64, ptr @fly.index
  %index.32 = trunc i64 %index to i32
  %lane = and i32 %index.32, 31
  %own = icmp eq i32 %lane, %leader
  %pair.0 = insertvalue { i32, i1 } poison, i32 %leader, 0
  %pair.1 = insertvalue { i32, i1 } %pair.0, i1 %own, 1
  ret { i32, i1 } %pair.1""",
    )
    meeting = "  call void @fly.meet(i32 %mask, i64 0, i32 %site)\n  ret void"
    yield _function("bar.warp.sync", "void", "i32 %mask, i32 %site", meeting)
    yield _function(
        "activemask",
        "i32",
        "i32 %site",
        expanded(f"""
  %f = load ptr, ptr @fly.current
  %site.at = getelementptr i8, ptr %f, i64 $_site
  store i32 %site, ptr %site.at
  call void @fly.wait(i32 {ACTIVE})
  %output.at = getelementptr i8, ptr %f, i64 $_output
  %mask = load i64, ptr %output.at
  %mask.32 = trunc i64 %mask to i32
  ret i32 %mask.32"""),
    )


def _barriers() -> Iterator[tuple[str, str]]:
    for aligned, word in ((True, "aligned."), (False, "")):
        flag = str(aligned).lower()
        for form, given, count in (
            ("all", "i32 %id", "0"),
            ("count", "i32 %id, i32 %count", "%count"),
        ):
            call = f"call i64 @fly.barrier(i32 %id, i32 {count}, i1 {flag}, i1 VALUE, i32 %site)"
            plain = f"  %unused = {call.replace('VALUE', 'false')}\n  ret void"
            yield _function(f"barrier.cta.sync.{word}{form}", "void", f"{given}, i32 %site", plain)
            voting = f"  %counts = {call.replace('VALUE', '%value')}\n"
            voting += "  %trues = trunc i64 %counts to i32\n"
            everyone = "  %high = lshr i64 %counts, 32\n  %every = trunc i64 %high to i32\n"
            for name, result, end in (
                ("popc", "i32", "  ret i32 %trues"),
                ("or", "i1", "  %any = icmp ne i32 %trues, 0\n  ret i1 %any"),
                ("and", "i1", everyone + "  %all = icmp eq i32 %trues, %every\n  ret i1 %all"),
            ):
                full = f"barrier.cta.red.{name}.{word}{form}"
                yield _function(full, result, f"{given}, i1 %value, i32 %site", voting + end)
        arrive = "  call void @fly.arrive(i32 %id, i32 %count, i32 %site)\n  ret void"
        name = f"barrier.cta.arrive.{word}count"
        yield _function(name, "void", "i32 %id, i32 %count, i32 %site", arrive)


def table() -> dict[str, str]:
    """The functions by the intrinsics' names without `llvm.nvvm.`."""
    makers = (_shuffles, _votes, _matches, _reductions, _others, _barriers)
    return {name: text for maker in makers for name, text in maker()}


def shared() -> str:
    """What these functions call, besides the runtime."""
    return _SHUFFLED

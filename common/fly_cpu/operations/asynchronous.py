"""mbarriers, copies by TMA and cp.async, clusters, fences, registers of a warp group: calls of the
runtime.

Each function has one more parameter than the intrinsic, the number of the place in the code. What
only orders accesses, or only says how many registers a thread has, does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from fly_cpu.tensor_maps import MOST_MODES

_NOTHING = {
    "fence.mbarrier_init.release.cluster": "",
    "fence.proxy.async.shared_cta": "",
    "wgmma.fence.sync.aligned": "",
    "setmaxnreg.inc.sync.aligned.u32": "i32 %count",
    "setmaxnreg.dec.sync.aligned.u32": "i32 %count",
    "prefetch.tensormap.p0": "ptr %map",
    "mbarrier.inval.shared": "ptr addrspace(3) %at",
}


def _function(name: str, result: str, parameters: str, body: str) -> tuple[str, str]:
    given = f"{parameters}, i32 %site" if parameters else "i32 %site"
    head = f"define internal {result} @fly.nvvm.{name}({given}) noinline nounwind {{\n"
    return name, f"{head}{body.strip(chr(10))}\n}}\n"


def _address(name: str) -> str:
    return f"  %{name}.64 = ptrtoint ptr addrspace(3) %{name} to i64\n"


def _mbarriers() -> Iterator[tuple[str, str]]:
    at = "ptr addrspace(3) %at"
    yield _function(
        "mbarrier.init.shared",
        "void",
        f"{at}, i32 %count",
        _address("at")
        + "  call void @fly.mbarrier.init(i64 %at.64, i32 %count, i32 %site)\n  ret void",
    )
    for scope in ("cta", "cluster"):
        yield from _own_mbarriers(scope)
    remote = "ptr addrspace(7) %at"
    address = _address("at").replace("addrspace(3)", "addrspace(7)")
    counted = """  %count.64 = zext i32 %count to i64
  call void @fly.strict.mbarrier.arrive(i64 %at.64)
  %word = call i64 @fly.mbarrier.count(i64 %at.64, i64 ARRIVALS, i64 BYTES, i32 %site)
  ret void"""
    for form, arrivals, nbytes in (
        (".scope.cluster", "%count.64", "0"),
        (".scope.cta", "%count.64", "0"),
        (".expect.tx.scope.cluster", "1", "%count.64"),
    ):
        name = f"mbarrier.arrive{form}.space.cluster"
        body = counted.replace("ARRIVALS", arrivals).replace("BYTES", nbytes)
        yield _function(name, "void", f"{remote}, i32 %count", address + body)


def _own_mbarriers(scope: str) -> Iterator[tuple[str, str]]:
    """Those of the block itself. All threads see the same memory, whatever the scope."""
    at = "ptr addrspace(3) %at"
    arrive = """  %count.64 = zext i32 %count to i64
  call void @fly.strict.mbarrier.arrive(i64 %at.64)
  %word = call i64 @fly.mbarrier.count(i64 %at.64, i64 %count.64, i64 0, i32 %site)
  ret i64 %word"""
    name = f"mbarrier.arrive.scope.{scope}.space.cta"
    yield _function(name, "i64", f"{at}, i32 %count", _address("at") + arrive)
    expect = """  %bytes.64 = zext i32 %bytes to i64
  call void @fly.strict.mbarrier.arrive(i64 %at.64)
  %word = call i64 @fly.mbarrier.count(i64 %at.64, i64 1, i64 %bytes.64, i32 %site)
  ret i64 %word"""
    name = f"mbarrier.arrive.expect.tx.scope.{scope}.space.cta"
    yield _function(name, "i64", f"{at}, i32 %bytes", _address("at") + expect)
    wait = "  call void @fly.mbarrier.wait(i64 %at.64, i32 %parity, i32 %site)\n  ret i1 true"
    name = f"mbarrier.try.wait.parity.scope.{scope}.space.cta"
    yield _function(name, "i1", f"{at}, i32 %parity", _address("at") + wait)


def _tiles() -> Iterator[tuple[str, str]]:
    for rank in range(1, MOST_MODES + 1):
        own = ", ".join(f"i32 %c{mode}" for mode in range(rank))
        given = ", ".join(f"i32 {f'%c{m}' if m < rank else 0}" for m in range(MOST_MODES))
        load = f"""  %shared.64 = ptrtoint ptr addrspace(7) %shared to i64
  %barrier.64 = ptrtoint ptr addrspace(3) %barrier to i64
  br i1 %multicast, label %several, label %one
one:
  call void @fly.tile(ptr %map, i64 %shared.64, {given}, i64 %barrier.64, i32 %site)
  ret void
several:
  %mask = zext i16 %blocks to i32
  call void @fly.multicast(ptr %map, i64 %shared.64, {given}, i64 %barrier.64, i32 %mask, i32 %site)
  ret void"""
        yield _function(
            f"cp.async.bulk.tensor.g2s.tile.{rank}d",
            "void",
            f"ptr addrspace(7) %shared, ptr addrspace(3) %barrier, ptr %map, {own}, i16 %blocks,"
            " i64 %hint, i1 %multicast, i1 %hinted, i32 %group",
            load,
        )
        store = f"""  %shared.64 = ptrtoint ptr addrspace(3) %shared to i64
  call void @fly.tile(ptr %map, i64 %shared.64, {given}, i64 0, i32 %site)
  ret void"""
        yield _function(
            f"cp.async.bulk.tensor.s2g.tile.{rank}d",
            "void",
            f"ptr addrspace(3) %shared, ptr %map, {own}, i64 %hint, i1 %hinted",
            store,
        )


def _clusters() -> Iterator[tuple[str, str]]:
    for form in ("", ".aligned", ".relaxed", ".relaxed.aligned"):
        arrive = "  call void @fly.cluster.arrive(i32 %site)\n  ret void"
        yield _function(f"barrier.cluster.arrive{form}", "void", "", arrive)
    for form in ("", ".aligned"):
        wait = "  call void @fly.cluster.wait(i32 %site)\n  ret void"
        yield _function(f"barrier.cluster.wait{form}", "void", "", wait)
    for name, own, to in (("mapa", 0, 0), ("mapa.shared.cluster", 3, 7)):
        source, target = (f"ptr addrspace({n})" if n else "ptr" for n in (own, to))
        body = f"""  %own.64 = ptrtoint {source} %own to i64
  %there.64 = call i64 @fly.mapa(i64 %own.64, i32 %rank, i32 %site)
  %there = inttoptr i64 %there.64 to {target}
  ret {target} %there"""
        yield _function(name, target, f"{source} %own, i32 %rank", body)


def _groups() -> Iterator[tuple[str, str]]:
    kinds = (("bulk.", "stores", ("", ".read")), ("", "elements", ("",)))
    for name, copies, forms in kinds:
        commit = f"  call void @fly.commit.{copies}()\n  ret void"
        yield _function(f"cp.async.{name}commit.group", "void", "", commit)
        wait = f"  call void @fly.wait.{copies}(i32 %groups)\n  ret void"
        for form in forms:
            yield _function(f"cp.async.{name}wait.group{form}", "void", "i32 %groups", wait)


def _elements() -> Iterator[tuple[str, str]]:
    for cached, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        body = f"""  %to.64 = ptrtoint ptr addrspace(3) %to to i64
  %from.64 = ptrtoint ptr addrspace(1) %from to i64
  call void @fly.element(i64 %to.64, i64 %from.64, i32 {size}, i32 %site)
  ret void"""
        name = f"cp.async.{cached}.shared.global.{size}"
        yield _function(name, "void", "ptr addrspace(3) %to, ptr addrspace(1) %from", body)


def table() -> dict[str, str]:
    """The functions by the intrinsics' names without `llvm.nvvm.`."""
    name = "wgmma.commit_group.sync.aligned"
    found = dict([_function(name, "void", "", "  call void @fly.strict.commit()\n  ret void")])
    found |= {
        name: _function(name, "void", given, "  ret void")[1] for name, given in _NOTHING.items()
    }
    for maker in (_mbarriers, _tiles, _elements, _groups, _clusters):
        found |= dict(maker())
    return found

"""See `h200_hopper`."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
PLACE = "cuda" if torch.cuda.is_available() else "cpu"
Check = Callable[[Any, random.Random], float]  # the greatest difference, as a share of the bound


class Case(NamedTuple):
    """A host function of a file, its arguments where annotations don't describe them, and its
    constants. check: a function of this module, and what it gets beside the compiled function."""

    name: str
    file: str
    entry: str
    arguments: tuple[np.ndarray, ...]
    constants: dict[str, Any]
    check: str
    given: dict[str, Any]


def cases() -> Iterator[Case]:
    """Rings with specialised warps, and without; by atoms of warps and of warp groups; clusters;
    dependent launches."""
    for stages in (2, 3, 4, 7):
        file = "examples/ring_gemm.py"
        yield Case(f"gemm, {stages}", file, "ring_gemm", (), {"stages": stages}, "gemm", {})
    rings = "tests/fly_trace/pipelines/ring_kernels.py"
    for name, shape in (("f2", (128, 64)), ("f4", (64, 32)), ("f2", (96, 32)), ("f2", (8, 24))):
        for stages in (2, 3, 5):
            options: list[dict[str, Any]] = [{}, {"own_loop": True}, {"tensors": True}]
            for option in options:
                label = f"tiles of {name} {shape}, {stages}, {next(iter(option), 'fill')}"
                constants = {"shape": shape, "stages": stages, **option}
                arguments = np.zeros((2, 8, 8), name), np.zeros((2, 8), "f4")
                given = {"name": name, "shape": shape}
                yield Case(label, rings, "tiles", arguments, constants, "tiles", given)
    yield Case("products by warp groups", rings, "wgmma", (), {}, "wgmma", {})
    yield Case("roles", rings, "roles", (), {}, "roles", {})
    cluster = "examples/hopper/cluster_softmax.py"
    yield Case("softmax of clusters", cluster, "cluster_softmax", (), {}, "softmax", {})
    dependent = "examples/hopper/dependent_launch.py"
    yield Case("norm, dependent", dependent, "rms_norm", (), {}, "rms_norm", {})
    launches = "tests/h200_hopper/launches.py"
    yield Case("chain, dependent", launches, "chain", (), {"rounds": 5}, "chain", {"rounds": 5})
    yield Case("overlap", launches, "unordered", (), {}, "overlap", {})


def prepare(folder: Path) -> None:
    """Writes an image for each case, and cases.json."""
    from fly_trace.session.load import find_entry, load_file

    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, case in enumerate(cases()):
        path = str(ROOT / case.file)
        function = find_entry(load_file(path), path, case.entry)
        compiled = function.compile(*case.arguments, target="sm_90a", **case.constants)
        compiled.save(folder / f"{number}.image")
        row = {"name": case.name, "file": f"{number}.image", "check": case.check}
        rows.append({**row, "given": case.given})
        print(case.name, flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-8, 8, shape, device=PLACE)


def gemm(call: Any, random_: random.Random) -> float:
    m, n = (random_.choice((random_.randint(1, 70), random_.randint(1, 700))) for _ in "mn")
    k = 8 * random_.choice((random_.randint(1, 20), random_.randint(1, 200)))
    a, b = integers(m, k).half(), integers(n, k).half()
    return exactly(call(a, b), a.double() @ b.double().t())


def tiles(call: Any, random_: random.Random, name: str, shape: list[int]) -> float:
    kind = {"f2": torch.float16, "f4": torch.float32}[name]
    unit = 16 // kind.itemsize
    rows = random_.randint(1, shape[0])
    columns = random_.randint(1, 9 * shape[1] // unit) * unit
    x = integers(random_.randint(1, 12), rows, columns).to(kind)
    y = torch.full(x.shape[:2], 99.0, device=PLACE)
    call(x, y)
    return exactly(y, x.double().sum(2))


def wgmma(call: Any, random_: random.Random) -> float:
    m, k = 128 * random_.randint(1, 30), 8 * random_.randint(1, 100)
    a, b = integers(m, k).half(), integers(64, k).half()
    c = torch.zeros(m, 64, device=PLACE)
    call(a, b, c)
    return exactly(c, a.double() @ b.double().t())


def roles(call: Any, random_: random.Random) -> float:
    x, y = integers(384).float(), torch.zeros(384, device=PLACE)
    call(x, y)
    given = x[128:] + torch.arange(256, device=PLACE) // 128
    return exactly(y, torch.cat((2 * x[:128], given.flip(0))))


def softmax(call: Any, random_: random.Random) -> float:
    m, n = random_.randint(1, 200), random_.choice((random_.randint(1, 100), 65536))
    n = random_.randint(1, n)
    x, y = 3 * torch.randn(m, n, device=PLACE), torch.zeros(m, n, device=PLACE)
    call(x, y)
    return nearly(y, x.double().softmax(1), 5e-6)


def rms_norm(call: Any, random_: random.Random) -> float:
    m, n = random_.randint(1, 3000), random_.randint(1, 5000)
    x, w = torch.randn(m, n, device=PLACE), torch.randn(n, device=PLACE)
    s, y = torch.zeros(m, device=PLACE), torch.zeros(m, n, device=PLACE)
    call(x, w, s, y)
    squares = (x.double() ** 2).mean(1, keepdim=True)
    return nearly(y, x.double() * w / (squares + 1e-6).sqrt(), 1e-5)


def chain(call: Any, random_: random.Random, rounds: int) -> float:
    n, pauses = random_.randint(1, 1 << random_.randint(1, 22)), random_.choice((0, 5, 50))
    x = integers(n).int()
    exact = x.clone()
    y, z = (torch.zeros_like(x) for _ in "yz")
    call(x, y, z, pauses)
    for _ in range(rounds):
        exact = 2 * (exact + 1) + 2
    return exactly(x, exact)


def overlap(call: Any, random_: random.Random) -> float:
    """A kernel that does not wait reads what was there before: it began early. A first call loads
    the kernels, which takes longer than the late one does."""
    n, old = random_.randint(1, 1 << 14), random_.randint(100, 200)
    x = integers(n).int()
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    call(x, y, z, 0)
    y.fill_(old)
    torch.cuda.synchronize()
    call(x, y, z, 2000)
    return exactly(z, torch.full_like(x, 2 * old)) + exactly(y, x + 1)


CHECKS: dict[str, Callable[..., float]] = {
    one.__name__: one for one in (gemm, tiles, wgmma, roles, softmax, rms_norm, chain, overlap)
}


def exactly(found: torch.Tensor, right: torch.Tensor) -> float:
    return float("inf") if (found.double() != right.double()).any() else 0.0


def nearly(found: torch.Tensor, right: torch.Tensor, bound: float) -> float:
    """The greatest error as a share of what it may be beside the greatest result."""
    difference = (found.double() - right).abs().max()
    return (difference / right.abs().max().clamp(min=1e-9) / bound).item()


def run(folder: Path, count: int, seed: int = 0) -> int:
    """Runs all functions with random sizes; 1 if a result is wrong."""
    from fly.call.loading import load

    torch.manual_seed(seed)
    random_, failed = random.Random(seed), 0
    rows = json.loads((folder / "cases.json").read_text())
    for row in rows:
        compiled, worst, wrong = load(str(folder / row["file"])), 0.0, 0
        check = CHECKS[row["check"]]
        for _ in range(count):
            error = check(compiled, random_, **row["given"])
            wrong += not error <= 1
            worst = max(worst, error)
        failed += bool(wrong)
        told = f"{wrong} of {count} wrong" if wrong else f"ok, {worst:.2f} of the bound"
        print(f"{row['name']}: {told}", flush=True)
    print(f"{len(rows)} functions, {len(rows) * count} calls, {failed} functions wrong")
    return int(failed > 0)


def main(words: list[str]) -> int:
    if words[:1] == ["prepare"] and len(words) == 2:
        prepare(Path(words[1]))
        return 0
    if words[:1] == ["run"] and len(words) in (2, 3):
        return run(Path(words[1]), int(words[2]) if words[2:] else 20)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

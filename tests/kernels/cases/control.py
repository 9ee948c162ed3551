"""Calls, recursion, jump tables, private memory, structs, divergence."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator


def _wrapped(v: int) -> int:
    return (v + 2**31) % 2**32 - 2**31


@case("control")
def indirect(rng: Random) -> Launch:
    n = 140
    a = rng.integers(-(2**31), 2**31, (n, 2)).astype("i4")
    table = (
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x >> (y & 31),
    )
    wanted = np.array([_wrapped(table[x & 3](x, y)) for x, y in a.tolist()], "i4")
    return Launch([a, np.zeros(n, "i4"), np.int32(n)], **blocks(n, 70), expected={1: wanted})


@case("control")
def recursion(rng: Random) -> Launch:
    fibonacci = [0, 1]
    for _ in range(10):
        fibonacci.append(fibonacci[-1] + fibonacci[-2])

    def steps(n: int, odd: bool) -> int:
        value = 0
        for _ in range(n):
            value, odd = value * 3 + 1 if odd else value * 2, not odd
        return value

    results = (
        lambda n: fibonacci[n],
        lambda n: 2 * (n // 2) + 3,  # Ackermann's function of 2
        lambda n: steps(n, True),
        lambda n: steps(n, False),
    )
    wanted = np.array([results[i % 4](i % 9) for i in range(70)], "u4")
    return Launch([np.zeros(70, "u4")], **blocks(70, 70), expected={0: wanted})


def _run(code: bytes, start: int) -> tuple[int, int]:
    stack, pc, count = [start], 0, 0
    while count < 200:
        op = code[pc]
        pc += 1
        if op == 0:
            break
        value = stack[-1]
        match op:
            case 1:
                stack.append((code[pc] + 128) % 256 - 128)
                pc += 1
            case 2 | 3 | 4 | 10:
                stack.pop()
                under = stack[-1]
                both = {2: under + value, 3: under - value, 4: under * value, 10: under ^ value}
                stack[-1] = _wrapped(both[op])
            case 5:
                stack.append(value)
            case 6:
                stack[-1], stack[-2] = stack[-2], value
            case 7:
                stack[-1] = _wrapped(-value)
            case 8:
                stack[-1] = value >> 1
            case 9:
                stack.pop()
                pc += ((code[pc] + 128) % 256 - 128 if value else 0) + 1
            case 11:
                stack[-1] = ~value
            case 12:
                stack.append(count)
            case _:
                stack[-1] = op
        count += 1
    return stack[-1], count


def _program(rng: Random) -> bytes:
    """Straight code that keeps between one and sixteen values, then a loop until zero."""
    code, depth = bytearray(), 1
    while len(code) < 20:
        wanted = int(rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 40]))
        if wanted in (2, 3, 4, 6, 10) and depth < 2:
            wanted = 5
        code.append(wanted)
        if wanted == 1:
            code.append(int(rng.integers(256)))
        depth += {1: 1, 5: 1, 12: 1, 2: -1, 3: -1, 4: -1, 10: -1}.get(wanted, 0)
    # `value >> 1` until it is zero; a negative one stays -1 until the steps run out.
    return bytes(code + bytes([8, 5, 9, 0x100 - 3, 0])).ljust(32, b"\0")


@case("control")
def bytecode(rng: Random) -> Launch:
    n = 90
    programs = [_program(rng) for _ in range(n)]
    start = rng.integers(-(2**31), 2**31, n).astype("i4")
    wanted = np.array([_run(*pair) for pair in zip(programs, start.tolist(), strict=True)], "i4")
    code = np.frombuffer(b"".join(programs), "u1").copy()
    return Launch(
        [code, start, np.zeros((n, 2), "i4"), np.int32(n)], **blocks(n, 45), expected={2: wanted}
    )


@case("control")
def sort_private(rng: Random) -> Launch:
    keys = rng.integers(0, 256, (100, 24)).astype("u1")
    keys[0] = np.arange(24)[::-1]
    return Launch([keys, np.zeros_like(keys)], **blocks(100, 50), expected={1: np.sort(keys, 1)})


RECORD = np.dtype(
    [
        ("tag", "u1"),
        ("number", "i4"),
        ("half_word", "i2"),
        ("real", "f8"),
        ("name", "u1", 3),
        ("big", "i8"),
    ]
)
SETTINGS = np.dtype(
    [("from", "i2", 3), ("mask", "u1"), ("bias", "i8"), ("factor", "f4", 2)], align=True
)


@case("control")
def records(rng: Random) -> Launch:
    n = 85
    given = np.frombuffer(rng.bytes(n * RECORD.itemsize), RECORD).copy()
    given["real"] = rng.standard_normal(n)
    settings = np.zeros(1, SETTINGS)
    settings["from"], settings["mask"], settings["bias"] = (1103, -12345, 0x5A5A), 0x7E, 3**37
    settings["factor"] = 0.1, -1.5
    chosen = settings[0]
    wanted = given.copy()
    wanted["number"] = given["number"] * np.int32(1103) + np.int32(-12345)
    wanted["half_word"] ^= 0x5A5A
    wanted["real"] *= chosen["factor"].astype("f8")[given["tag"] & 1]
    wanted["name"] = given["name"][:, ::-1]
    wanted["big"] += chosen["bias"]
    wanted["tag"] &= 0x7E
    return Launch(
        [given, np.zeros_like(given), chosen, np.int32(n)],
        **blocks(n, 64),
        expected={1: wanted[::-1].copy()},
    )


def _wander(value: int) -> int:
    result = 0
    for a in range(value % 13):
        if (value >> a & 3) == 1:
            continue
        for b in range(a, 20, 1 + (value >> 5 & 3)):
            if b * a > (value >> 9) % 97:
                break
            result = (result + (a ^ b << 3)) % 2**32
            if result % 31 == 7:
                return result
        result = (result * 3 + 1) % 2**32 if result & 1 else result >> 1
    return result


@case("control")
def divergence(rng: Random) -> Launch:
    n = 200
    a = rng.integers(0, 2**32, n).astype("u4")
    wanted = np.array([_wander(v) for v in a.tolist()], "u4")
    return Launch([a, np.zeros(n, "u4"), np.int32(n)], **blocks(n, 100), expected={1: wanted})

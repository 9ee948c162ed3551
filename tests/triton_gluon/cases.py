"""The configurations of Triton's Gluon examples for gfx1250 that are run: small problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A call of an example's own host function, which launches its kernels.

    `group`: a row of the table. `own`: the example's own check, which is torch's arithmetic, is the
    only one."""

    name: str
    group: str
    file: str
    function: str
    parameters: dict[str, Any] = field(default_factory=dict)
    own: bool = False


def _named(group: str, parameters: dict[str, Any], *varied: str) -> str:
    told = []
    for key in varied:
        value = parameters[key]
        if isinstance(value, bool):
            told += [key.lower()] * value
        else:
            told.append(f"{key.lower()}={value}" if not isinstance(value, str) else value)
    return " ".join([group, *(one for one in told if one)])


def products() -> Iterator[Case]:
    """f16_gemm: TDM loads through several buffers."""
    file, tile = "f16_gemm_cdna5", {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 64}
    group = "f16_gemm"
    for persistent, prefetch, transposed, size, buffers, distance, warps in (
        (False, False, False, (64, 64, 256), 2, 0, 4),
        (False, False, True, (70, 50, 190), 3, 2, 8),
        (True, False, True, (96, 128, 256), 2, 2, 4),
        (True, False, False, (70, 90, 254), 4, 0, 4),
        (True, True, True, (96, 128, 320), 3, 2, 4),
        (True, True, False, (90, 70, 190), 2, 0, 8),
    ):
        given = dict(zip("MNK", size, strict=True)) | tile
        given |= {"NUM_BUFFERS": buffers, "TRANSPOSE_B": transposed, "PERSISTENT": persistent}
        given |= {"PREFETCH": prefetch, "L2_PREFETCH_DISTANCE": distance, "num_warps": warps}
        varied = ("PERSISTENT", "PREFETCH", "TRANSPOSE_B", "M", "N", "K", "num_warps")
        for test, label in (
            ("test_runtime_gemm_tdm_pipelined_single_cta", group),
            ("test_runtime_swiglu_gemm_tdm_pipelined", f"{group} swiglu"),
        ):
            yield Case(_named(label, given, *varied), label, file, test, given)
    for transposed, buffers, size in ((False, 2, (64, 32, 256)), (True, 4, (50, 90, 510))):
        given = dict(zip("MNK", size, strict=True)) | {"BLOCK_M": 32, "BLOCK_N": 32}
        given |= {"NUM_BUFFERS": buffers, "TRANSPOSE_B": transposed}
        given |= {"L2_PREFETCH_DISTANCE": 2, "ctas_per_cga": [1, 1]}
        label = f"{group} one wave per SIMD"
        test = "test_runtime_gemm_tdm_pipelined_single_warp_per_simd_schedule"
        yield Case(_named(label, given, "TRANSPOSE_B", "M", "N", "K"), label, file, test, given)
    for persistent, transposed, size, warps in (
        (False, False, (64, 64, 256), 8),
        (False, True, (70, 50, 190), 16),
        (True, True, (96, 128, 256), 12),
        (True, False, (70, 90, 254), 12),
    ):
        given = dict(zip("MNK", size, strict=True)) | tile
        given |= {"NUM_BUFFERS": 2, "TRANSPOSE_B": transposed, "PERSISTENT": persistent}
        given |= {"NUM_TOTAL_WARPS": warps}
        label = f"{group} warp-specialized"
        varied = ("PERSISTENT", "TRANSPOSE_B", "M", "N", "K", "NUM_TOTAL_WARPS")
        test = "test_runtime_gemm_tdm_warp_specialized"
        yield Case(_named(label, given, *varied), label, file, test, given)
    given = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 256, "NUM_BUFFERS": 2, "TRANSPOSE_B": True}
    given |= {"PERSISTENT": True, "M": 256, "N": 128, "K": 512, "NUM_TOTAL_WARPS": 12}
    test = "test_runtime_gemm_tdm_warp_specialized_subtiled"
    label = f"{group} warp-specialized"
    yield Case(f"{label} subtiled", label, file, test, given)
    for ctas in ([2, 1], [2, 2]):
        given = {"M": 64 * ctas[0], "N": 64 * ctas[1], "K": 256, "ctas_per_cga": ctas} | tile
        given |= {"NUM_BUFFERS": 2, "TRANSPOSE_B": False, "PERSISTENT": False, "PREFETCH": False}
        given |= {"L2_PREFETCH_DISTANCE": 0, "num_warps": 4}
        label = f"{group} clusters"
        test = "test_runtime_gemm_tdm_pipelined_multi_cta"
        name = _named(label, given, "ctas_per_cga")
        yield Case(name, label, file, test, given)


def stream_k() -> Iterator[Case]:
    file = group = "f16_gemm_streamk"
    tile = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 64}
    for prefetch, transposed, size, buffers in (
        (False, False, (96, 96, 256), 2),
        (True, True, (98, 98, 318), 2),
        (False, True, (130, 66, 254), 2),
    ):
        given = dict(zip("MNK", size, strict=True)) | tile | {"NUM_BUFFERS": buffers}
        given |= {"TRANSPOSE_B": transposed, "use_prefetch": prefetch}
        name = _named(group, given, "use_prefetch", "TRANSPOSE_B", "M", "N", "K")
        yield Case(name, group, f"{file}_cdna5", "test_streamk_gemm_tdm_4warps", given)
    for transposed, size in ((False, (96, 96, 256)), (True, (98, 98, 318))):
        given = dict(zip("MNK", size, strict=True)) | tile
        given |= {"NUM_BUFFERS": 3, "TRANSPOSE_B": transposed}
        name = _named(f"{group} 8 waves", given, "TRANSPOSE_B", "M", "N", "K")
        yield Case(name, group, f"{file}_cdna5", "test_streamk_gemm_tdm_8warps", given)


def warp_pipelines() -> Iterator[Case]:
    file = group = "f16_gemm_warp_pipeline"
    given = {"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64, "NUM_BUFFERS": 3, "TRANSPOSE_B": True}
    given |= {"M": 256, "N": 256, "K": 320, "DUMP": False}
    for kernel_b in (False, True):
        more = given | {"USE_KERNEL_B": kernel_b}
        name = f"{group} {'B' if kernel_b else 'A'}"
        yield Case(name, group, f"{file}_cdna5", "test_runtime_gemm_tdm_pipelined", more)
    test = "test_runtime_gemm_tdm_predicated_pipelined"
    yield Case(f"{group} predicated", group, f"{file}_cdna5", test, given)


def attention() -> Iterator[Case]:
    group = "f16_fa"
    for kind, batch, heads, queries, keys, size, tile in (
        ("default", 1, 2, 200, 200, 64, (128, 32)),
        ("default", 1, 2, 1, 30, 32, (128, 32)),
        ("pipeline", 1, 2, 200, 200, 64, (128, 64)),
        ("pipeline", 2, 2, 3, 32, 128, (128, 32)),
        ("pipeline", 2, 1, 1, 100, 32, (128, 32)),
        ("pingpong", 1, 2, 300, 300, 64, (256, 32)),
        ("decode", 2, 2, 1, 200, 128, (128, 32)),
    ):
        config = {"BATCH": batch, "SEQLEN_Q": queries, "SEQLEN_K": keys, "NUM_Q_HEADS": heads}
        config |= {"NUM_K_HEADS": heads, "HEAD_SZ": size, "ATTN_FN": kind}
        config |= dict(zip(("BLOCK_M", "BLOCK_N"), tile, strict=True))
        name = f"{group} {kind} {batch}x{heads}x{queries}x{keys}x{size}"
        yield Case(name, group, f"{group}_cdna5", "test_attention", {"config": config})


def scaled_products() -> Iterator[Case]:
    group, file = "mxfp_gemm", "mxfp_gemm_cdna5"
    base = {"GROUP_SIZE_M": 8, "ASYNC_COPY_SCALE": False, "PARTIAL_TDM": False}
    base |= {"RESOLVE_PARTITION_CONFLICTS": False, "TDM_SPLIT": False, "ACTIVATION": ""}
    fp8, wide, fp4 = "float8_e4m3", "float8_e5m2", "float4"
    for kinds, size, tile, buffers, schedule, more in (
        ((wide, fp4), (128, 128, 256), (64, 64, 64), 2, "baseline", {}),
        ((fp4, fp8), (128, 128, 128), (64, 64, 64), 2, "baseline", {"TRANSPOSE_B": True}),
        ((fp8, wide), (128, 64, 256), (64, 64, 64), 2, "baseline", {"WITH_A_SCALE": False}),
        ((fp4, fp4), (128, 128, 256), (64, 64, 64), 4, "baseline", {"TRANSPOSE_B": True}),
        ((wide, fp4), (128, 128, 256), (128, 128, 128), 2, "baseline", {"SCALE_PRESHUFFLE": True}),
        ((fp4, fp8), (128, 128, 256), (64, 64, 64), 2, "baseline", {"ACTIVATION": "swiglu"}),
        ((wide, fp4), (128, 128, 512), (128, 128, 256), 2, "sliceK", {}),
        ((fp8, wide), (256, 256, 512), (128, 256, 256), 2, "sliceNK", {}),
        ((wide, fp4), (256, 256, 512), (128, 256, 256), 2, "sliceNK", {"ASYNC_COPY_SCALE": True}),
        ((fp4, fp4), (256, 256, 512), (128, 256, 256), 2, "sliceMNK", {}),
        ((fp8, wide), (256, 256, 512), (256, 256, 256), 2, "sliceMNK", {"TDM_SPLIT": True}),
        (
            (wide, fp4),
            (256, 256, 512),
            (256, 256, 256),
            2,
            "sliceMNK",
            {"TDM_SPLIT": True, "PARTIAL_TDM": True, "RESOLVE_PARTITION_CONFLICTS": True},
        ),
    ):
        plain = schedule == "baseline"
        given = base | {"TRANSPOSE_B": not plain, "SCALE_PRESHUFFLE": not plain}
        given |= {"WITH_A_SCALE": True, "NUM_BUFFERS": buffers, "SCHEDULE": schedule}
        given |= {"L2_PREFETCH_DISTANCE": 2 if plain else 0}
        given |= dict(zip(("DTYPE_A", "DTYPE_B"), kinds, strict=True))
        given |= dict(zip("MNK", size, strict=True))
        given |= dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile, strict=True)) | more
        label = f"{group} {schedule}"
        shown = " ".join(("x".join(map(str, size)), *(f"{k}={v}".lower() for k, v in more.items())))
        name = f"{label} {kinds[0]} {kinds[1]} {shown}"
        yield Case(name, label, file, "test_runtime_mxgemm_tdm_pipelined", given)
    for schedule, tile, buffers, pingpong in (
        ("baseline", (256, 256, 128), 3, True),
        ("sliceK", (128, 256, 256), 2, False),
    ):
        given = {"DTYPE_A": wide, "DTYPE_B": fp4, "M": 256, "N": 256, "K": 512}
        given |= dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile, strict=True))
        given |= {"TRANSPOSE_B": True, "NUM_BUFFERS": buffers, "SCALE_PRESHUFFLE": True}
        given |= {"WITH_A_SCALE": True, "SCHEDULE": schedule, "ASYNC_COPY_SCALE": False}
        given |= {"GROUP_SIZE_M": 8, "PINGPONG": pingpong, "L2_PREFETCH_DISTANCE": 0}
        name = f"{group} 8 waves {schedule}{' pingpong' if pingpong else ''}"
        yield Case(name, f"{group} 8 waves", file, "test_runtime_mxgemm_tdm_8warps_pipeline", given)


def scaled_attention() -> Iterator[Case]:
    group = "mxfp_fa"
    keys = "q_type,kv_type,batch,seqlen_q,seqlen_k,num_q_heads,num_k_heads,head_sz"
    for block, kind, queries, many, heads, pipelined, pingpong in (
        (True, "e4m3", 256, 256, (1, 1), False, False),
        (True, "e2m1", 256, 256, (2, 1), False, False),
        (True, "e4m3", 768, 768, (1, 1), True, False),
        (True, "e2m1", 768, 768, (1, 1), True, True),
        (True, "e4m3", 1, 256, (2, 2), False, False),
        (True, "e2m1", 1, 1024, (64, 1), False, False),
        (True, "e4m3", 1, 1024, (64, 1), False, False),
        (False, "e4m3", 256, 256, (1, 1), False, False),
        (False, "e4m3", 768, 768, (1, 1), True, True),
        (False, "e4m3", 1, 768, (1, 1), True, False),
    ):
        values = ("e4m3", kind, 1, queries, many, *heads, 64)
        given = dict(zip(keys.split(","), values, strict=True))
        given |= {"pipelined": pipelined, "pingpong": pingpong}
        label = f"{group} {'block' if block else 'global'} scales"
        name = _named(f"{label} {kind} {queries}x{many} {heads[0]}/{heads[1]}", given,
                      "pipelined", "pingpong")  # fmt: skip
        test = f"test_{'block' if block else 'global'}_scaled_attn_fwd"
        yield Case(name, label, f"{group}_cdna5", test, given)


def experts() -> Iterator[Case]:
    group, fp4 = "moe", "mxfloat4_e2m1"
    for kinds, size, tile, more in (
        (("float8_e5m2", fp4), (300, 400, 416), (128, 128, 256), {"do_gather": True}),
        (("float8_e4m3fn", fp4), (300, 400, 416), (128, 128, 256), {"do_scatter": True}),
        (("float8_e4m3fn", fp4), (128, 128, 512), (128, 128, 256), {"SCALE_PRESHUFFLING": True}),
        (("bfloat16", "bfloat16"), (100, 96, 416), (128, 128, 128), {"do_bias": True}),
        (
            ("float8_e5m2", fp4),
            (128, 128, 512),
            (128, 128, 256),
            {"swiglu_opts": (1.1, 1.4), "do_bias": True},
        ),
        (("float8_e5m2", fp4), (128, 128, 512), (128, 128, 256), {"schedule": "sliceK"}),
        (("float8_e4m3fn", fp4), (256, 256, 512), (256, 256, 256), {"schedule": "sliceNK"}),
    ):
        given = dict(zip(("dtype_a", "dtype_b"), kinds, strict=True))
        given |= dict(zip(("m", "n", "k"), size, strict=True))
        given |= dict(zip(("block_m", "block_n", "block_k"), tile, strict=True))
        given |= {"do_gather": False, "do_scatter": False, "do_bias": False}
        given |= {"SCALE_PRESHUFFLING": False, "swiglu_opts": None, "num_buffers": 2}
        given |= {"schedule": "baseline", "pingpong": False, "num_warps": 4} | more
        shown = " ".join(f"{k}={v}".lower().replace("=true", "") for k, v in more.items())
        name = f"{group} {kinds[0]} {kinds[1]} {'x'.join(map(str, size))} {shown}"
        yield Case(name, group, "moe_cdna5", "test_matmul", given, own=True)


CASES = [
    *products(),
    *stream_k(),
    *warp_pipelines(),
    *attention(),
    *scaled_products(),
    *scaled_attention(),
    *experts(),
]

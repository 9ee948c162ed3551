"""Further shapes, types, tiles and targets of kernels that other modules have cases of."""

from __future__ import annotations

import torch

from flydsl_kernels import (
    attention,
    cdna5,
    cdna5_moe,
    convolution,
    decoding,
    gemm,
    gemm_cdna4,
    mega,
    mixed,
    moe,
    mxfp,
    norm,
    paged,
    pages,
)
from flydsl_kernels.case import case

SOFTMAX, SOFTMAX_BWD = "norm/softmax_kernel.py", "norm/softmax_bwd_kernel.py"
LAYERNORM, RMSNORM = "norm/layernorm_kernel.py", "norm/rmsnorm_kernel.py"
RMSNORM_BWD = "norm/rmsnorm_bwd_kernel.py"
BF16, F16 = torch.bfloat16, torch.float16

for rows, columns, dtype, target in (
    (1, 1, "f32", "gfx942"),
    (4, 64, "f16", "gfx1100"),
    (3, 4097, "bf16", "gfx950"),
    (2, 257, "f32", "gfx1201"),
    (2, 512, "bf16", "gfx1250"),
):
    size = f"{dtype} {rows}x{columns} {target}"
    given = {"target": target, "rows": rows, "columns": columns, "dtype": dtype}
    case(f"softmax {size}", SOFTMAX, race=norm.RED, **given)(norm.softmax)
    case(f"softmax_bwd {size}", SOFTMAX_BWD, **given)(norm.softmax_bwd)
    case(f"layernorm {size}", LAYERNORM, **given)(norm.layernorm)
    case(f"rmsnorm {size}", RMSNORM, **given)(norm.rmsnorm)
    case(f"fused_add_rmsnorm {size}", RMSNORM, **given)(norm.fused_add_rmsnorm)
for rows, columns, dtype, target in (
    (5, 1025, "f16", "gfx942"),
    (2, 96, "bf16", "gfx1201"),
    (3, 4096, "f32", "gfx950"),
):
    size = f"{dtype} {rows}x{columns} {target}"
    given = {"target": target, "rows": rows, "columns": columns, "dtype": dtype}
    case(f"layernorm_bwd {size}", LAYERNORM, **given)(norm.layernorm_bwd)
    case(f"rmsnorm_bwd {size}", RMSNORM_BWD, **given)(norm.rmsnorm_bwd)
    case(f"fused_add_layernorm {size}", LAYERNORM, **given)(norm.fused_add_layernorm)

PRESHUFFLE = "gemm/preshuffle_gemm.py"
case("preshuffle_gemm int8 bias_gelu 1x192x1024", PRESHUFFLE, kind="int8", m=1, n=192, k=1024,
     epilogue="bias_gelu")(gemm.preshuffle)  # fmt: skip
case("preshuffle_gemm fp8 bias_silu 49x64x256", PRESHUFFLE, kind="fp8", m=49, n=64, k=256,
     epilogue="bias_silu")(gemm.preshuffle)  # fmt: skip
case("preshuffle_gemm bf16 bias gfx950", PRESHUFFLE, target="gfx950", kind="bf16", m=80, n=128,
     k=384, epilogue="bias")(gemm.preshuffle)  # fmt: skip
case("preshuffle_gemm int8 gfx950", PRESHUFFLE, target="gfx950", kind="int8", m=47, n=192,
     k=768)(gemm.preshuffle)  # fmt: skip
case("rdna3_f16_gemm f16 128x256x192", "gemm/rdna3_f16_gemm.py", target="gfx1100", kind="f16",
     out="f16", size=(128, 256, 192))(gemm.wmma)  # fmt: skip
case("rdna_f16_gemm bf16 256x256x96 f32", "gemm/rdna_f16_gemm.py", target="gfx1201", kind="bf16",
     out="f32", size=(256, 256, 96))(gemm.wmma)  # fmt: skip
case("rdna_fp8_preshuffle_gemm 96x384x96", "gemm/rdna_fp8_preshuffle_gemm.py", target="gfx1201",
     size=(96, 384, 96))(gemm.rdna_fp8)  # fmt: skip

W8, W4 = "gemm/fp8_gemm_8wave.py", "gemm/fp8_gemm_4wave.py"
case("fp8_gemm_8wave 256x512x512", W8, target="gfx950", waves=8, size=(256, 512, 512))(
    gemm_cdna4.fp8
)
case("fp8_gemm_4wave 192x128x512", W4, target="gfx950", waves=4, size=(192, 128, 512))(
    gemm_cdna4.fp8
)
case("mxfp4_preshuffle fp4 1x128x1024", "gemm/mxfp4_preshuffle.py", target="gfx950", m=1, n=128,
     k=1024)(gemm_cdna4.mxfp4)  # fmt: skip
case("mxfp4_preshuffle fp4 97x384x256", "gemm/mxfp4_preshuffle.py", target="gfx950", m=97, n=384,
     k=256)(gemm_cdna4.mxfp4)  # fmt: skip
A16 = "gemm/gemm_a16w16_gfx950.py"
case("gemm_a16w16 fp16 tn bias 136x72x256", A16, target="gfx950", kind=F16, layout="tn",
     size=(136, 72, 256), bias=True)(gemm_cdna4.a16w16)  # fmt: skip
case("gemm_a16w16 bf16 nn split 3", A16, target="gfx950", kind=BF16, layout="nn",
     size=(65, 64, 384), split=3, bias=True)(gemm_cdna4.a16w16)  # fmt: skip
case("gemm_a16w16 bf16 tt 8x8x128", A16, target="gfx950", kind=BF16, layout="tt",
     size=(8, 8, 128))(gemm_cdna4.a16w16)  # fmt: skip

case("preshuffle_gemm bf16 one stage, tile 64x128", PRESHUFFLE, kind="bf16", m=130, n=256, k=256,
     tile=(64, 128, 64), lds_stage=1, waves_per_eu=2)(gemm.preshuffle)  # fmt: skip
case("preshuffle_gemm fp8 asynchronous gfx950", PRESHUFFLE, target="gfx950", kind="fp8", m=65,
     n=128, k=512, tile=(32, 128, 128), use_async_copy=True)(gemm.preshuffle)  # fmt: skip
case("preshuffle_gemm int8 swizzled, unscheduled", PRESHUFFLE, kind="int8", m=70, n=256, k=512,
     tile=(32, 64, 128), xcd_swizzle=4, enable_scheduler=False)(gemm.preshuffle)  # fmt: skip
RDNA3 = "gemm/rdna3_f16_gemm.py"
case("rdna3_f16_gemm kblock, persistent", RDNA3, target="gfx1100", kind="f16", out="f32",
     size=(128, 64, 128), reg_m=2, reg_n=1, lds_layout="kblock", persistent_wgs=4)(
    gemm.wmma
)  # fmt: skip
case("rdna3_f16_gemm staggered, strides", RDNA3, target="gfx1151", kind="bf16", out="bf16",
     size=(64, 64, 192), reg_m=2, reg_n=2, stagger=2, sched_hint=True)(gemm.wmma)  # fmt: skip
case("rdna3_f16_gemm stochastic", RDNA3, target="gfx1100", kind="bf16", out="bf16",
     size=(64, 64, 128), reg_m=2, reg_n=2, rounding="rs", close=0.2)(gemm.wmma)  # fmt: skip
case("rdna_f16_gemm stochastic, one group", "gemm/rdna_f16_gemm.py", target="gfx1201",
     kind="bf16", out="bf16", size=(128, 64, 128), reg_m=2, reg_n=2, reg_k=4, rounding="rs",
     group_m=1, a_k_pad=0, close=0.2)(gemm.wmma)  # fmt: skip
case("rdna_fp8_preshuffle_gemm 64x64x192 tiles", "gemm/rdna_fp8_preshuffle_gemm.py",
     target="gfx1201", size=(64, 64, 192), tile_m=16, tile_n=32, tile_k=64, group_m=2)(
    gemm.rdna_fp8
)  # fmt: skip
case("gemm_a16w16 bf16 f32 out, slice-K", A16, target="gfx950", kind=BF16, layout="nt",
     size=(70, 100, 256), out=torch.float32, block_m=32, block_n=64, m_waves=1, n_waves=2,
     k_waves=2)(gemm_cdna4.a16w16)  # fmt: skip
case("gemm_a16w16 fp16 half tiles, groups", A16, target="gfx950", kind=F16, layout="nt",
     size=(300, 264, 256), block_m=128, block_n=128, n_waves=4, group_m=2,
     use_half_tile_interleaved=True)(gemm_cdna4.a16w16)  # fmt: skip
case("gemm_a16w16 bf16 three stages", A16, target="gfx950", kind=BF16, layout="tn",
     size=(64, 96, 320), stages=3, block_n=32, n_waves=1, m_waves=4)(
    gemm_cdna4.a16w16
)  # fmt: skip
case("fp8_gemm_4wave 256x64x384 no remap", W4, target="gfx950", waves=4, size=(256, 128, 384),
     block=(128, 64), use_xcd_remap=False)(gemm_cdna4.fp8)  # fmt: skip
case("fp4_gemm_4wave 256x512x1536", "gemm/fp4_gemm_4wave.py", target="gfx950", n=512, k=1536)(
    gemm_cdna4.fp4
)
case("mxfp4_preshuffle fp4 130x256x512 tile 64", "gemm/mxfp4_preshuffle.py", target="gfx950",
     m=130, n=256, k=512, tile=(64, 256, 256))(gemm_cdna4.mxfp4)  # fmt: skip
case("rmsnorm f16, weights f32", RMSNORM, rows=3, columns=2048, dtype="f16", weights="f32",
     eps=1e-3)(norm.rmsnorm)  # fmt: skip
case("rmsnorm bf16, weights f32, 70 columns", RMSNORM, target="gfx1100", rows=2, columns=70,
     dtype="bf16", weights="f32")(norm.rmsnorm)  # fmt: skip

GENERIC, WAVE = attention.FILES["generic"], attention.FILES["wave"]
case("flash_attn f16 1 causal", GENERIC, kind="f16", length=1, causal=True)(attention.flash)
case("flash_attn bf16 d64 200 causal grouped", GENERIC, kind="bf16", length=200, causal=True,
     heads=4, kv=1, width=64, batch=1)(attention.flash)  # fmt: skip
case("flash_attn f16 gfx950 129 grouped", GENERIC, target="gfx950", kind="f16", length=129,
     causal=False, heads=3, kv=1)(attention.flash)  # fmt: skip
case("flash_attn bf16 dualwave 1024 grouped", WAVE, target="gfx950", kind="bf16", length=1024,
     causal=True, heads=2, kv=1, batch=1)(attention.flash)  # fmt: skip

ROPE = decoding.ROPE
case("fused_rope_cache bf16 d64 blocked fp8", ROPE, kind="f16", width=64, flash_layout=True,
     scaled=True)(decoding.rope_cache)  # fmt: skip
case("fused_rope_cache bf16 d128 blocked", ROPE, kind="bf16", width=128, flash_layout=False,
     scaled=False)(decoding.rope_cache)  # fmt: skip
QK = "attention/qk_norm_rope_quant.py"
case("qk_norm_rope_quant fp8 rows", QK, quant=True, group=512)(decoding.qk_norm_rope)
case("qk_norm_rope_quant fp8 groups of 32", QK, quant=True, group=32)(decoding.qk_norm_rope)

TILE, RACE = paged.TILE, paged.RACE
case("pa_decode_tile f16 64 plain", TILE, kind="f16", block=64, lengths=[1, 200], plain=True)(
    paged.paged
)
case("pa_decode_tile bf16 16 d64 per token", TILE, kind="bf16", block=16, lengths=[255],
     width=64, per_token=True)(paged.paged)  # fmt: skip
case("pa_decode_tile gfx950 two tokens", TILE, target="gfx950", kind="f16", block=16,
     lengths=[40, 2, 111], tokens=2, chip="gfx950")(paged.paged)  # fmt: skip
case("mla_decode fp8 1 and 64", paged.MLA, lengths=[1, 64])(paged.latent)
DECODE = pages.DECODE
case("pa_decode_fp8 f16 3 sequences", DECODE, kind="f16", lengths=[5, 1024, 300], heads=(16, 2))(
    pages.whole
)
case("pa_metadata 1 sequence, 12 bins", pages.METADATA, lengths=[2049], bins=12)(pages.shared_out)

REDUCE = "moe/moe_gemm_2stage/moe_reduce.py"
case("moe_reduce bf16 1x1x8", REDUCE, kind="bf16", tokens=1, top=1, width=8)(moe.reduce)
case("moe_reduce f16 masked 33x6x2056", REDUCE, kind="f16", tokens=33, top=6, width=2056,
     masked=True)(moe.reduce)  # fmt: skip
GATING = "moe/topk_gating_softmax_kernel.py"
case("topk_gating_softmax f16 1x256x8", GATING, kind="f16", tokens=1, experts=256, top=8)(
    moe.gating
)
case("topk_gating_softmax f32 gfx950 130x8x1", GATING, target="gfx950", kind="f32", tokens=130,
     experts=8, top=1)(moe.gating)  # fmt: skip
case("topk_gating_softmax bf16 5x32x32", GATING, kind="bf16", tokens=5, experts=32, top=32)(
    moe.gating
)
case("moe_gemm1 int8 gfx950", "moe/moe_gemm_2stage/gemm1.py", target="gfx950", kind="int8")(
    moe.gemm1
)
case("moe_gemm2 fp8 accumulated gfx950", "moe/moe_gemm_2stage/gemm2.py", target="gfx950",
     kind="fp8", accumulate=True)(moe.gemm2)  # fmt: skip

MOE1, MOE2 = "moe/moe_gemm_2stage/gemm1.py", "moe/moe_gemm_2stage/gemm2.py"
case("moe_gemm1 fp8 weighted bf16 tile 32", MOE1, kind="fp8", tokens=21, size=(512, 192),
     tile=(32, 64, 128), out_type="bf16", doweight=True)(moe.gemm1)  # fmt: skip
case("moe_gemm1 int8 tile 16x128x256", MOE1, kind="int8", tokens=5, size=(1024, 256),
     tile=(16, 128, 256))(moe.gemm1)  # fmt: skip
case("moe_gemm2 int8 unweighted bf16 tile 64", MOE2, kind="int8", tokens=40, size=(384, 256),
     tile=(64, 128, 256), out_type="bf16", doweight=False)(moe.gemm2)  # fmt: skip
case("moe_gemm2 fp8 accumulated f32", MOE2, kind="fp8", accumulate=True, tokens=33, out_type="f32",
     size=(128, 384), tile=(32, 64, 128))(moe.gemm2)  # fmt: skip

GEMM1, GEMM2 = mixed.GEMM1, mixed.GEMM2
case("a16wmix gemm1 bf16 gfx942 40", GEMM1, kind="bf16", tokens=40, rows=32, inner=256,
     options={"k_wave": 1, "act": "situv2"})(mixed.gemm1)  # fmt: skip
case("a16wmix gemm1 mxfp4 k_wave 4", GEMM1, target="gfx950", kind="mxfp4", tokens=5, rows=16,
     width=512, tile_k=128, options={"k_wave": 4})(mixed.gemm1)  # fmt: skip
case("a16wmix gemm1 int4 gfx942 48 rows", GEMM1, kind="int4", tokens=33, rows=48)(mixed.gemm1)
case("a16wmix gemm2 bf16 gfx942 64 rows", GEMM2, kind="bf16", tokens=50, rows=64, width=384)(
    mixed.gemm2
)
case("a16wmix gemm2 int4 gfx950 persistent", GEMM2, target="gfx950", kind="int4", tokens=17,
     rows=32, persist=True)(mixed.gemm2)  # fmt: skip
case("mxfp_moe gemm1 a4w4 1 token", mxfp.GEMM1, target="gfx950", tokens=1, rows=32, width=768)(
    mxfp.gemm1
)
case("mxfp_moe gemm2 flat, 11 tokens", mxfp.GEMM2, target="gfx950", tokens=11, rows=128, flat=True)(
    mxfp.gemm2
)
CONV = "conv/conv3d_implicit.py"
case("conv3d 3ch 2x1x2 strides", CONV, target="gfx950", size=(1, 3, 4, 5, 10, 17),
     kernel=(2, 1, 2), stride=2)(convolution.conv3d)  # fmt: skip
case("conv3d 32ch 1x1x1", CONV, target="gfx950", size=(2, 32, 1, 3, 11, 70), kernel=1)(
    convolution.conv3d
)
case("mega_moe quant fp4 40x2048", mega.QUANT, target="gfx950", mode="fp4", rows=40, width=2048)(
    mega.quantized
)
case("mega_moe scale sort 128", mega.QUANT, target="gfx950", tokens=50, columns=256, rows=128)(
    mega.sorted_scales
)

case("gemm_a8w4 257x128x1024 four buffers", cdna5.FILE, target="gfx1250",
     size=(257, 128, 1024, 64, 128, 256, 2, 2, 4))(cdna5.mx_scaled)  # fmt: skip
case("gemm_a8w4 16x512x256 cluster of columns", cdna5.FILE, target="gfx1250",
     size=(16, 512, 256, 32, 128, 128, 1, 4, 2), cluster=(1, 4), kind="f16")(
    cdna5.mx_scaled
)  # fmt: skip
case("gemm_a8w8 1x128x384", cdna5.FILE8, target="gfx1250",
     size=(1, 128, 384, 16, 128, 128, 1, 4, 2))(cdna5.products8)  # fmt: skip
case("gemm_a8w8 200x128x768 cluster, three buffers", cdna5.FILE8, target="gfx1250",
     size=(200, 128, 768, 64, 64, 256, 2, 2, 3), cluster=(1, 2), kind="f16")(
    cdna5.products8
)  # fmt: skip
case("gemm_a8w8 block scales 128x128x1024 f16", cdna5.FILE8, target="gfx1250",
     size=(128, 128, 1024, 128, 128, 128, 2, 2, 3), kind="f16", blocks=True)(
    cdna5.products8
)  # fmt: skip
BIAS = "it adds the first tile's columns of the bias in each tile of columns"
case("moe_a8w4 5 experts, silu, bias", cdna5_moe.FILE, target="gfx1250", rows=[3, 0, 0, 70, 1],
     tile=(32, 256, 128), activation=1, bias=True)(cdna5_moe.experts)  # fmt: skip
case("moe_a8w4 bias, two tiles of columns", cdna5_moe.FILE, target="gfx1250", rows=[3, 0, 0, 70, 1],
     tile=(32, 256, 128), activation=1, bias=True, n=512, defect=BIAS)(
    cdna5_moe.experts
)  # fmt: skip

"""Cases of kernels/attention: one token at a time, keys and values in blocks of 8-bit floats."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from flydsl_kernels.case import DTYPES, Comparison, case, random

TILE = "attention/pa_decode_tile.py"
# With more than one tile of 256 tokens.
RACE = "a wave stores the next tile's page numbers before others have read the first one's"
FP8 = {"gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}


@case("pa_decode_tile f16 16", TILE, kind="f16", block=16, lengths=[1, 37, 300], race=RACE)
@case("pa_decode_tile bf16 64 d64", TILE, kind="bf16", block=64, lengths=[64, 129], width=64)
@case("pa_decode_tile per token", TILE, kind="f16", block=16, lengths=[33, 250], per_token=True)
@case("pa_decode_tile plain v", TILE, kind="bf16", block=16, lengths=[17, 90], plain=True)
@case(
    "pa_decode_tile partitions",
    TILE,
    kind="f16",
    block=16,
    lengths=[9, 700],
    partitions=2,
    race=RACE,
)
@case("pa_decode_tile two tokens", TILE, kind="bf16", block=64, lengths=[70, 19], tokens=2)
@case(
    "pa_decode_tile gfx950", TILE, target="gfx950", kind="bf16", block=64, lengths=[300, 65],
    chip="gfx950", race=RACE,
)  # fmt: skip
def paged(
    kind: str,
    block: int,
    lengths: list[int],
    width: int = 128,
    per_token: bool = False,
    plain: bool = False,
    partitions: int = 1,
    tokens: int = 1,
    chip: str = "gfx942",
) -> Iterator[Comparison]:
    from kernels.attention.pa_decode_tile import pa_decode_tile

    heads, kv_heads, sequences = 8, 2, len(lengths)
    most = max(-(-length // block) for length in lengths)
    blocks = sequences * most + 3
    tables = torch.randperm(blocks, generator=torch.Generator().manual_seed(1))
    tables = tables[: sequences * most].view(sequences, most).int()
    keys, values = (
        random(blocks, block, kv_heads, width, seed=seed).to(FP8[chip]) for seed in (2, 3)
    )
    key_cache = keys.view(torch.uint8).view(blocks, block, kv_heads, width // 16, 16)
    key_cache = key_cache.permute(0, 2, 3, 1, 4).contiguous().view(FP8[chip])
    value_cache = values.view(torch.uint8).permute(0, 2, 3, 1)  # block, head, width, place
    if not plain:
        value_cache = value_cache.reshape(blocks, kv_heads, width, block // 16, 16)
        value_cache = value_cache.transpose(2, 3)
    value_cache = value_cache.contiguous().view(FP8[chip])
    scales = torch.rand(2, blocks, kv_heads, block, generator=torch.Generator().manual_seed(4))
    scales = 0.5 + scales if per_token else torch.tensor([[0.75], [1.25]])
    query = random(sequences * tokens, heads, width, dtype=DTYPES[kind])
    out = torch.zeros_like(query)
    pa_decode_tile(
        out, query, key_cache, value_cache, tables, torch.tensor(lengths, dtype=torch.int32),
        scales[0].contiguous(), scales[1].contiguous(), width**-0.5, num_partitions=partitions,
    )  # fmt: skip

    def held(cache: torch.Tensor, scale: torch.Tensor, sequence: int) -> torch.Tensor:
        whole = cache.double()
        whole = whole * (scale.double().transpose(1, 2)[..., None] if per_token else scale.double())
        return whole[tables[sequence].long()].flatten(0, 1)[: lengths[sequence]]

    wanted = torch.zeros(sequences * tokens, heads, width, dtype=torch.double)
    for sequence in range(sequences):
        k, v = (
            held(one, scale, sequence).repeat_interleave(heads // kv_heads, 1)
            for one, scale in zip((keys, values), scales, strict=True)
        )
        for token in range(tokens):
            seen = lengths[sequence] - tokens + 1 + token  # a token does not see later ones
            row = sequence * tokens + token
            scores = torch.einsum("hd,khd->hk", query[row].double(), k[:seen]) / math.sqrt(width)
            wanted[row] = torch.einsum("hk,khd->hd", torch.softmax(scores, 1), v[:seen])
    # Queries and probabilities are rounded to 8 bits.
    yield Comparison("out", out, wanted, 0.1, 0.06)


MLA = "attention/mla_fwd_decode_m16x8_fp8_fp8.py"


@case("mla_decode fp8 70", MLA, lengths=[70])
@case("mla_decode fp8 33 and 5 workers", MLA, lengths=[33, 5])
@case(
    "mla_decode fp8 keys in 3 parts",
    MLA,
    race="a wave stores its results to LDS where another loads the next item's keys",
    lengths=[100, 1],
    parts=[3, 1],
    workers=2,
)
@case("mla_decode fp8 4 workers", MLA, lengths=[100, 1], parts=[3, 1])
@case("mla_decode fp8 gfx950 130", MLA, target="gfx950", lengths=[130], chip="gfx950")
def latent(
    lengths: list[int], parts: list[int] | None = None, workers: int = 0, chip: str = "gfx942"
) -> Iterator[Comparison]:
    """Multi-head latent attention: 128 heads share keys of 576, whose first 512 are the values.
    Each part of a sequence's keys is an item of work, with a partial result in f32 of its own."""
    from kernels.attention import mla_fwd_decode_m16x8_fp8_fp8 as module

    heads, width, kept = 128, module.QK_HEAD_DIM, module.V_HEAD_DIM
    sequences, pages = len(lengths), sum(lengths) + 7
    query = random(sequences, heads, width).to(FP8[chip])
    cache = random(pages, width, seed=1).to(FP8[chip])
    indices = torch.randperm(pages, generator=torch.Generator().manual_seed(2))[: sum(lengths)]
    first = [sum(lengths[:number]) for number in range(sequences + 1)]
    items = []  # sequence, keys from and to
    for n, length in enumerate(lengths):
        count = parts[n] if parts else 1
        ends = [first[n] + length * part // count for part in range(count + 1)]
        items += [(n, ends[part], ends[part + 1]) for part in range(count)]
    # An item of work: batch, slot of the partial result, queries from and to, keys from and to,
    # and how far the last key is from the last query.
    work = [[n, slot, n, n + 1, start, end, 0, 0] for slot, (n, start, end) in enumerate(items)]
    workers = workers or len(items)
    shares = [len(items) * worker // workers for worker in range(workers + 1)]
    out = torch.zeros(sequences * heads, kept, dtype=torch.bfloat16)
    partial, sums = torch.zeros(len(items) * heads, kept), torch.zeros(len(items) * heads)
    module.launch_mla_fwd_decode_m16x8_fp8_fp8(
        query.view(-1, width), cache, indices.int(), torch.tensor(shares, dtype=torch.int32),
        torch.tensor(work, dtype=torch.int32).flatten(), out, partial, sums,
        width**-0.5, workers, 160 << 10, stream=torch.cuda.current_stream(),
    )  # fmt: skip
    wanted = torch.zeros(len(items), heads, kept, dtype=torch.double)
    logarithms = torch.zeros(len(items), heads, dtype=torch.double)
    for slot, (n, start, end) in enumerate(items):
        k = cache.double()[indices[start:end]]
        scores = query[n].double() @ k.T / math.sqrt(width)
        wanted[slot] = torch.softmax(scores, 1) @ k[:, :kept]
        logarithms[slot] = scores.logsumexp(1)
    yield Comparison("partial", partial.view(len(items), heads, kept), wanted, 0.06, 0.06)
    yield Comparison("lse", sums.view(len(items), heads), logarithms, 1e-3, 1e-3)

"""Cases of kernels/attention: one token at a time, keys and values in pages of 1024 tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from flydsl_kernels.case import DTYPES, Comparison, case, random
from flydsl_kernels.paged import FP8

PAGE = 1024
RACE = "a wave stores its largest score where others still read a query's scale"
DECODE, WINDOW = "attention/pa_decode_fp8.py", "attention/pa_decode_swa.py"
METADATA, TUNING = "attention/pa_metadata.py", "attention/pa_metadata_tuning.py"


class Problem:
    """Queries, and keys and values in pages that are in no order."""

    def __init__(
        self,
        lengths: list[int],
        kind: str = "bf16",
        heads: tuple[int, int] = (8, 1),
        tokens: int = 1,
        per_token: bool = False,
        plain: bool = False,
        chip: str = "gfx942",
        width: int = 128,
    ):
        self.lengths, self.tokens, self.width, self.per_token = lengths, tokens, width, per_token
        count, self.kv_heads = heads
        most = max(-(-length // PAGE) for length in lengths)
        pages = len(lengths) * most + 1
        order = torch.randperm(pages, generator=torch.Generator().manual_seed(1))
        self.tables = order[: len(lengths) * most].view(len(lengths), most).int()
        self.keys, self.values = (
            random(pages, PAGE, self.kv_heads, width, seed=seed).to(FP8[chip]) for seed in (2, 3)
        )
        bits = self.keys.view(torch.uint8).view(pages, PAGE, self.kv_heads, width // 16, 16)
        self.key_cache = bits.permute(0, 2, 3, 1, 4).contiguous().view(FP8[chip])
        bits = self.values.view(torch.uint8).permute(0, 2, 3, 1)
        if not plain:
            bits = bits.reshape(pages, self.kv_heads, width, PAGE // 16, 16).transpose(2, 3)
        self.value_cache = bits.contiguous().view(FP8[chip])
        made = torch.Generator().manual_seed(4)
        scales = torch.rand(2, pages, self.kv_heads, PAGE, generator=made) + 0.5
        self.scales = scales if per_token else torch.tensor([[0.75], [1.25]])
        self.query = random(len(lengths) * tokens, count, width, dtype=DTYPES[kind])
        self.context = torch.tensor(lengths, dtype=torch.int32)
        held = [-(-length // PAGE) for length in lengths]
        self.first = torch.tensor([0, *held]).cumsum(0).int()
        rows = zip(self.tables, held, strict=True)
        self.indices = torch.cat([row[:number] for row, number in rows])

    def metadata(self, multiplier: int | None = None) -> dict[str, torch.Tensor]:
        from kernels.attention.pa_decode_fp8 import get_pa_metadata

        return get_pa_metadata(
            self.query, self.key_cache, self.context, self.first, self.query.shape[1],
            self.kv_heads, per_token_kv=self.per_token, grid_multiplier=multiplier,
        )  # fmt: skip

    def launched(self, **more: object) -> torch.Tensor:
        from kernels.attention.pa_decode_fp8 import pa_decode_ps_launch

        out = torch.full_like(self.query, 99)
        pa_decode_ps_launch(
            out, self.query, self.key_cache, self.value_cache, self.context, self.indices,
            self.first, self.width**-0.5, self.scales[0].contiguous(),
            self.scales[1].contiguous(), block_tables=self.tables,
            **{"max_context_partition_num": 1, **more},
        )  # fmt: skip
        return out

    def wanted(self, window: int = 0) -> torch.Tensor:
        """With a window, a token sees itself and as many tokens before it."""
        result = torch.zeros(self.query.shape, dtype=torch.double)
        group = self.query.shape[1] // self.kv_heads
        scales = self.scales.double()
        if self.per_token:
            scales = scales.transpose(2, 3)[..., None]
        for number, length in enumerate(self.lengths):
            place = self.tables[number].long()
            k, v = (
                (cache.double() * scale)[place].flatten(0, 1).repeat_interleave(group, 1)
                for cache, scale in zip((self.keys, self.values), scales, strict=True)
            )
            for token in range(self.tokens):
                end = length - self.tokens + 1 + token
                start = max(0, end - 1 - window) if window else 0
                row = number * self.tokens + token
                scores = torch.einsum("hd,khd->hk", self.query[row].double(), k[start:end])
                chances = torch.softmax(scores * self.width**-0.5, 1)
                result[row] = torch.einsum("hk,khd->hd", chances, v[start:end])
        return result


def near(out: torch.Tensor, wanted: torch.Tensor) -> Comparison:
    """Queries and probabilities are rounded to 8 bits."""
    return Comparison("out", out, wanted, 0.1, 0.06)


@case("pa_decode_fp8 1027 and 90", DECODE, lengths=[1027, 90])
@case("pa_decode_fp8 two tokens per token", DECODE, lengths=[1500, 33], tokens=2, per_token=True)
@case("pa_decode_fp8 f16 plain v", DECODE, lengths=[700], kind="f16", heads=(16, 2), plain=True)
@case(
    "pa_decode_fp8 gfx950",
    DECODE,
    target="gfx950",
    lengths=[1027, 256],
    heads=(16, 1),
    chip="gfx950",
)
def whole(**given: object) -> Iterator[Comparison]:
    problem = Problem(**given)  # type: ignore[arg-type]
    yield near(problem.launched(), problem.wanted())


@case("pa_decode_swa window 100", WINDOW, race=RACE, window=100, parts=2, lengths=[1100, 57])
@case("pa_decode_swa fused", WINDOW, race=RACE, window=63, parts=1, lengths=[200, 1024])
@case(
    "pa_decode_swa window 600 three tokens",
    WINDOW,
    race=RACE,
    window=600,
    parts=4,
    lengths=[1500, 300],
    tokens=3,
    per_token=True,
)
def sliding(window: int, parts: int, **given: object) -> Iterator[Comparison]:
    problem = Problem(**given)  # type: ignore[arg-type]
    out = problem.launched(sliding_window=window, max_context_partition_num=parts)
    yield near(out, problem.wanted(window))


@case("pa_metadata 5 sequences", METADATA, lengths=[1027, 1, 256, 2000, 700], bins=8)
@case("pa_metadata 2 heads", METADATA, lengths=[600, 3000], bins=6, heads=(8, 2))
def shared_out(bins: int, **given: object) -> Iterator[Comparison]:
    """Every partition of 256 tokens is the work of exactly one bin, for each head."""
    from kernels.attention import pa_metadata as module

    problem = Problem(**given)  # type: ignore[arg-type]
    sequences, kv_heads = len(problem.lengths), problem.kv_heads
    sizes = module.get_pa_metadata_info_v1(sequences, kv_heads, num_cu=bins)
    made = [
        torch.full(size if isinstance(size, tuple) else (size,), -7, dtype=kind)
        for size, kind in sizes
    ]
    module.get_pa_metadata_v1(
        torch.arange(sequences + 1, dtype=torch.int32), problem.context, *made,
        query_group_size=problem.query.shape[1] // kv_heads, num_kv_heads=kv_heads,
        kv_granularity=256, query_length=1, num_cu=bins,
    )  # fmt: skip
    starts, work = made[0], made[1]
    parts = [-(-length // 256) for length in problem.lengths]
    first = [sum(parts[:number]) for number in range(sequences + 1)]
    done = torch.zeros(kv_heads, sum(parts), dtype=torch.int32)
    for item in range(int(starts[-1])):
        sequence, _, _, _, start, end, *_ = work[item].tolist()
        assert first[sequence] <= start < end <= first[sequence + 1]
        bin_of = int((starts[1:] <= item).sum())
        done[bin_of // (bins // kv_heads), start:end] += 1
    yield Comparison("times done", done, torch.ones_like(done))


@case("pa_metadata_tuning three grids", TUNING)
def tuned() -> Iterator[Comparison]:
    """Each grid is launched; the one that the measurement says is the fastest is kept."""
    from kernels.attention import pa_metadata_tuning as module

    problem, outputs, ran = Problem([1027, 90]), {}, []

    def runner(multiplier: int) -> int:
        metadata = problem.metadata(multiplier)
        outputs[multiplier] = problem.launched(metadata=metadata)
        ran.append(multiplier)
        return multiplier

    def measured(call: Callable[[], object], warmup: int, rep: int) -> float:
        call()  # which returns what the runner does, or nothing, by FlyDSL's version
        return {1: 3.0, 2: 1.0, 3: 2.0}[ran[-1]]

    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"FLYDSL_AUTOTUNE": "1", "FLYDSL_AUTOTUNE_CACHE_DIR": folder}
        tuner = module.make_pa_metadata_grid_autotuner(warmup=0, rep=1, do_bench=measured)
        sizes = (2, len(problem.key_cache), 1, False, 304, 8, 1, 128, PAGE)
        tuner(*sizes, problem.query, runner)
        kept = module.get_cached_config(tuner, *sizes, problem.query, runner)
    chosen = torch.tensor(kept.kwargs["grid_multiplier"])
    yield Comparison("chosen", chosen, torch.tensor(2))
    for multiplier in (1, 2, 3):
        yield near(outputs[multiplier], problem.wanted())

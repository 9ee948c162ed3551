"""Attention: two products with a softmax between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from triton_suite import formats
from triton_suite.case import Case, Made, types_of


def attentions() -> Iterator[Case]:
    for kind in ("fp16", "bf16"):
        for causal, tile, options in (
            (False, (64, 32, 64), {"num_warps": 4, "num_stages": 2}),
            (True, (32, 32, 32), {"num_warps": 2, "num_stages": 1}),
            (True, (128, 64, 64), {"num_warps": 4, "num_stages": 1, "waves_per_eu": 2}),
        ):

            def make(
                rng: np.random.Generator,
                kind: str = kind,
                causal: bool = causal,
                tile: tuple[int, int, int] = tile,
            ) -> Made:
                heads, length, d = 2, 128, tile[2]
                q, k, v = (
                    formats.array(rng.standard_normal((heads, length, d)), kind) for _ in range(3)
                )
                queries, keys, values = (formats.value(x, kind) for x in (q, k, v))
                scores = queries @ keys.transpose(0, 2, 1) * 0.125
                if causal:
                    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
                e = np.exp(scores - scores.max(2, keepdims=True))
                o = e / e.sum(2, keepdims=True) @ values
                # Weights are rounded to the operands' type before the second product.
                unit = 2.0**-9 if kind == "bf16" else 2.0**-12
                bound = formats.Rounded(o, kind, 2 * unit, 4 * unit)
                arguments = [q, k, v, np.zeros_like(q), np.int32(length), np.float32(0.125)]
                return arguments, (length // tile[0], heads, 1), {"o": bound}

            types = types_of(f"q:*{kind} k:*{kind} v:*{kind} o:*{kind} length:i32 scale:fp32")
            constants = dict(zip(("BM", "BN", "D"), tile, strict=True)) | {"CAUSAL": causal}
            yield Case(
                f"attention-{kind}-{tile[0]}-{causal}", "attention", types, constants, make, options
            )

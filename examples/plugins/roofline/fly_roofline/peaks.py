"""The peak rates of chips, from AMD's data sheets, each of one product with the chip.

Sources: AMD's data sheets of the Instinct MI100, MI210, MI300X and MI355X, and the product pages of
the Radeon RX 7900 XTX and RX 9070 XT on amd.com. Vector FLOPs are those of f32, matrix FLOPs those
of f16 and bf16 without sparsity: a bound for f32 and f64 as well, whose rates are lower. Matrices
of 8 bits and less, and packed or dual-issued vectors of f16, may be faster. Other products with the
chip have other clocks and memories: the options replace any of these figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_roofline.options import Options


@dataclass(frozen=True)
class Peaks:
    """Per second; 0 where it is not known."""

    product: str
    vector: float = 0.0
    matrix: float = 0.0
    bandwidth: float = 0.0


PEAKS = {
    "gfx908": Peaks("MI100", 23.1e12, 184.6e12, 1.2288e12),
    "gfx90a": Peaks("MI210", 22.6e12, 181.0e12, 1.6384e12),
    "gfx942": Peaks("MI300X", 163.4e12, 1307.4e12, 5.3e12),
    "gfx950": Peaks("MI355X", 157.3e12, 2516.6e12, 8.0e12),
    "gfx1100": Peaks("RX 7900 XTX", 61.4e12, 122.8e12, 0.96e12),
    "gfx1201": Peaks("RX 9070 XT", 48.7e12, 195.0e12, 0.64e12),
}


def of(target: str, options: Options) -> Peaks:
    """Returns a chip's peaks, with those that the options give."""
    known = PEAKS.get(target, Peaks(""))
    given = (options.peak_flops, options.peak_matrix_flops, options.peak_bandwidth)
    own = (known.vector, known.matrix, known.bandwidth)
    chosen = [one or other for one, other in zip(given, own, strict=True)]
    product = known.product if tuple(chosen) == own else "given peaks"
    return Peaks(product, *chosen)

"""The peak rates of chips, from AMD's data sheets, each of one product with the chip.

Sources: "AMD Instinct MI100 accelerator", "AMD Instinct MI210 accelerator", "AMD Instinct MI300X
accelerator" and "AMD Instinct MI355X GPU", data sheets, and the product pages of "AMD Radeon RX
7900 XTX" and "AMD Radeon RX 9070 XT" on amd.com. Vector FLOPs are those of f32, matrix FLOPs those
of f16 and bf16 without sparsity: a bound for other types too, whose rates are the same or lower
(f8 aside). Other products with the chip have other clocks and memories: the options replace any
of these figures.
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

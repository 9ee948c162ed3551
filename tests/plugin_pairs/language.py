"""What kernels see as `fx.pairs`."""

from __future__ import annotations

from fly_trace.values.plugin_ops import DialectValue, build, values_of

from plugin_pairs.dialect import Pair as PairSpec


@values_of(PairSpec)
class Pair(DialectValue):
    noun = "a pair"

    def take(self, at: int):
        return build("pairs.take", self, at=at)

    def swap(self):
        return build("pairs.swap", self)


def make(first, second):
    return build("pairs.make", first, second)

"""The order of logits, as integers: NaN is the greatest, and 0.0 and -0.0 are equal."""

from __future__ import annotations

import fly.expr as fx

NO_KEY = -(2**31)
# What is subtracted from the bits of f32 in order: those of NaNs with a sign, which come before
# -inf, wrap around to the greatest.
NANS = 0x007FFFFF


def key_of(logit):
    """Returns an integer that orders logits; those of NaNs are the greatest, and NO_KEY is less
    than all."""
    number = logit.to(fx.Float32)
    if logit.dtype == fx.Float32:
        number = number + 0.0  # quiet: the NaN whose key would be NO_KEY is a signalling one
    return in_order(number.bitcast(fx.Int32)) - NANS


def in_order(bits):
    """Returns the bits of f32 as integers in the order of the numbers, 0.0 and -0.0 as 0; and these
    as bits."""
    return fx.where(bits >= 0, bits, NO_KEY - bits)


def logit_of(key):
    """Returns the logit that has a key."""
    return in_order(key + NANS).bitcast(fx.Float32)

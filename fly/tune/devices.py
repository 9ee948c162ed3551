"""The device that a function runs on, by a name that does not depend on the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fly_plugin import activated

from fly.call.compiled import with_place
from fly.call.function import JitFunction
from fly.chains.chain import Chain

# A GPU's name is its number and its product: "cuda:0 (NVIDIA H200)".
_PRODUCT = re.compile(r"\w+:\d+ \((.+)\)")


def device_name(function: JitFunction, chain: Chain, values: Iterable[Any]) -> str:
    """ "emulator", "cpu", or the product of a GPU. `values` are a call's arrays, as NumPy's."""
    from fly_run.devices.registry import of_backend
    from fly_run.launch import runtime

    with activated(chain.plugins):
        name = with_place(of_backend(function.device, chain.backend), chain.target, values)
        with runtime.device(name, chain.target) as opened:
            found = opened.device.name
    product = _PRODUCT.fullmatch(found)
    return product[1] if product else found

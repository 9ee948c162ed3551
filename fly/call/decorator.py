"""The decorator @fly.jit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Unpack, overload

from fly_backend import choice
from fly_common.errors import UsageError
from fly_common.quoting import quoted

from fly.call import specialisation
from fly.call.function import JitFunction
from fly.call.host_options import CompileOptions, checked
from fly.call.specialisation import Specialized
from fly.chains import tuning
from fly.chains.chain import Chain
from fly.chains.tuning import Keywords


@overload
def jit(function: Callable[..., Any], /) -> JitFunction: ...
@overload
def jit(
    *,
    target: str | None = None,
    backend: str | None = None,
    chain: Chain | None = None,
    device: str = "auto",
    options: CompileOptions | None = None,
    arch: str | None = None,
    chip: str | None = None,
    plugins: Sequence[object] = (),
    specialize: Specialized | None = None,
    **keywords: Unpack[Keywords],
) -> Callable[[Callable[..., Any]], JitFunction]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    target: str | None = None,
    backend: str | None = None,
    chain: Chain | None = None,
    device: str = "auto",
    options: CompileOptions | None = None,
    arch: str | None = None,
    chip: str | None = None,
    plugins: Sequence[object] = (),
    specialize: Specialized | None = None,
    **keywords: Unpack[Keywords],
) -> Any:
    """Compiles a host function when it is called with arrays, and launches its kernels.

    `target` is the GPU to compile for; else `FLY_TARGET`, else the backend's default. `arch` and
    `chip` are other names of it. `backend` compiles for it; else `FLY_BACKEND`, else the target's
    own. Both are looked up when the function is compiled. `device` runs it: "auto", "emulator",
    "hip", "cuda:1", … (docs/devices.md). `options` say how the host function runs. The other
    keywords are what LLVM does: see `fly.chains.tuning.Tuning`; each has an environment variable
    that says it for functions whose decorator does not. `plugins` are activated after those of
    `FLY_PLUGINS` (docs/plugins.md). `chain` replaces all of that. `specialize` names extents that
    the function is compiled for: see `fly.call.specialisation`.
    """
    tuned = tuning.check(keywords)
    target = choice.aliased(target, arch, chip)
    if chain is not None and backend is not None:
        raise UsageError(
            "chain= and backend= contradict each other", hint="use fly.chain(backend=…)"
        )
    if chain is not None and tuned:
        raise UsageError(
            f"chain= and {', '.join(tuned)} contradict each other",
            hint="set these options in the chain's stages: fly.chain(opt=…, llc=…)",
        )
    if chain is not None and plugins:
        raise UsageError(
            "chain= and plugins= contradict each other", hint="use fly.chain(plugins=…)"
        )
    if chain is not None and target not in (None, chain.target):
        raise UsageError(f"target={quoted(target)} contradicts the chain's target, {chain.target}")
    settings = {
        "target": target,
        "backend": backend,
        "chain": chain,
        "tuning": tuned,
        "device": device,
    }
    settings["host"] = checked(options)
    settings["specialize"] = specialisation.checked(specialize)
    if plugins:
        from fly.chains.plugins import asked

        settings |= {"plugins": tuple(plugins), "asks": asked(plugins)}

    def make(plain: Any) -> JitFunction:
        if not isinstance(plain, FunctionType):
            raise UsageError(
                f"@fly.jit decorates a function, not a {type(plain).__name__}",
                hint="it stands right above the function, below other decorators",
            )
        return JitFunction(plain, plain.__name__, dict(settings))

    return make if function is None else make(function)

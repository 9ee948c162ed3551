"""Contexts: each device has one state, whatever the number of its contexts."""

from __future__ import annotations

from fly_run.hip_runtime.cells import put_int, put_size
from fly_run.hip_runtime.errors import need
from fly_run.hip_runtime.registered import alias, function
from fly_run.hip_runtime.runtime import Context, Runtime

API_VERSION = 4  # as hip_context.cpp has it


def _find(runtime: Runtime, handle: int) -> Context:
    return runtime.find(runtime.contexts, handle, "hipErrorInvalidContext")


def _current(runtime: Runtime) -> Context:
    contexts = runtime.thread.contexts
    return contexts[-1] if contexts else runtime.primary[runtime.thread.device]


@function
def hipDevicePrimaryCtxRetain(runtime: Runtime, pctx: int, dev: int) -> None:
    put_size(pctx, runtime.primary[runtime.ordinal(dev)].handle)
    runtime.devices[dev].active = True


@function
def hipDevicePrimaryCtxRelease(runtime: Runtime, dev: int) -> None:
    runtime.ordinal(dev)


@function
def hipDevicePrimaryCtxReset(runtime: Runtime, dev: int) -> None:
    runtime.devices[runtime.ordinal(dev)].active = False


@function
def hipDevicePrimaryCtxGetState(runtime: Runtime, dev: int, flags: int, active: int) -> None:
    device = runtime.devices[runtime.ordinal(dev)]
    if flags:
        put_int(flags, device.flags)
    if active:
        put_int(active, device.active)


@function
def hipDevicePrimaryCtxSetFlags(runtime: Runtime, dev: int, flags: int) -> None:
    device = runtime.devices[runtime.ordinal(dev)]
    need(not device.active, "hipErrorContextAlreadyInUse", "the primary context is active")
    device.flags = flags


@function
def hipCtxCreate(runtime: Runtime, ctx: int, flags: int, device: int) -> None:
    need(ctx, reason="a null pointer")
    runtime.ordinal(device)
    made = runtime.keep(runtime.contexts, Context, device=device, flags=flags)
    runtime.thread.contexts.append(made)
    put_size(ctx, made.handle)


@function
def hipCtxDestroy(runtime: Runtime, ctx: int) -> None:
    need(ctx, reason="a null pointer")
    found = _find(runtime, ctx)
    need(found not in runtime.primary, "hipErrorInvalidContext", "a primary context")
    contexts = runtime.thread.contexts
    if contexts and contexts[-1] is found:
        contexts.pop()
    del runtime.contexts[ctx]


@function
def hipCtxPushCurrent(runtime: Runtime, ctx: int) -> None:
    runtime.thread.contexts.append(_find(runtime, ctx))


@function
def hipCtxPopCurrent(runtime: Runtime, ctx: int) -> None:
    contexts = runtime.thread.contexts
    need(contexts, "hipErrorInvalidContext", "no context was pushed")
    popped = contexts.pop()
    if ctx:
        put_size(ctx, popped.handle)


@function
def hipCtxSetCurrent(runtime: Runtime, ctx: int) -> None:
    """A null context makes the primary one of the thread's device current."""
    contexts = runtime.thread.contexts
    found = _find(runtime, ctx) if ctx else None
    if contexts:
        contexts.pop()
    if found is not None:
        contexts.append(found)


@function
def hipCtxGetCurrent(runtime: Runtime, ctx: int) -> None:
    put_size(ctx, _current(runtime).handle)


@function
def hipCtxGetDevice(runtime: Runtime, device: int) -> None:
    put_int(device, _current(runtime).device)


@function
def hipCtxGetApiVersion(runtime: Runtime, ctx: int, apiVersion: int) -> None:
    if ctx:
        _find(runtime, ctx)
    put_int(apiVersion, API_VERSION)


@function
def hipCtxGetFlags(runtime: Runtime, flags: int) -> None:
    put_int(flags, _current(runtime).flags)


@function
def hipCtxSynchronize(runtime: Runtime) -> None:
    runtime.report_fault()


@function
def hipCtxGetCacheConfig(runtime: Runtime, cacheConfig: int) -> None:
    put_int(cacheConfig, 0)


@function
def hipCtxSetCacheConfig(runtime: Runtime, cacheConfig: int) -> None:
    """Has no effect, as on AMD's chips."""


for _subject in ("Cache", "SharedMem"):
    alias(f"hipCtxGet{_subject}Config", hipCtxGetCacheConfig)
    alias(f"hipCtxSet{_subject}Config", hipCtxSetCacheConfig)
    alias(f"hipDeviceGet{_subject}Config", hipCtxGetCacheConfig)
    alias(f"hipDeviceSet{_subject}Config", hipCtxSetCacheConfig)


@function
def hipCtxEnablePeerAccess(runtime: Runtime, peerCtx: int, flags: int) -> None:
    """All devices have the same memory."""
    _find(runtime, peerCtx)


@function
def hipCtxDisablePeerAccess(runtime: Runtime, peerCtx: int) -> None:
    _find(runtime, peerCtx)

"""Modules, their kernels and global variables."""

from __future__ import annotations

import ctypes
from pathlib import Path

import fly_image
from fly_common.errors import InputError
from fly_image.amd.code_object import Kernel

from fly_run.emulator.watch.occupancy import occupancy
from fly_run.hip_runtime import cells, errors, images
from fly_run.hip_runtime.cells import put_int, put_size
from fly_run.hip_runtime.errors import Failure, need
from fly_run.hip_runtime.memory import GLOBAL, Allocation
from fly_run.hip_runtime.registered import alias, function
from fly_run.hip_runtime.runtime import Function, Module, Runtime

OBJECT = 1  # STT_OBJECT
# hipJitOption of the buffer for error messages, and of its size.
ERROR_LOG, ERROR_LOG_SIZE = 5, 6
MOST_OPTIONS = 64
# hipFunction_attribute and hipFuncAttribute.
(
    MAX_THREADS,
    SHARED_SIZE,
    CONST_SIZE,
    LOCAL_SIZE,
    REGISTERS,
    PTX_VERSION,
    BINARY_VERSION,
    CACHE_MODE,
    MAX_DYNAMIC_SHARED,
    CARVEOUT,
) = range(10)


class FuncAttributes(ctypes.Structure):
    """hipFuncAttributes."""

    _fields_ = [
        ("binaryVersion", ctypes.c_int32),
        ("cacheModeCA", ctypes.c_int32),
        ("constSizeBytes", ctypes.c_size_t),
        ("localSizeBytes", ctypes.c_size_t),
        ("maxDynamicSharedSizeBytes", ctypes.c_int32),
        ("maxThreadsPerBlock", ctypes.c_int32),
        ("numRegs", ctypes.c_int32),
        ("preferredShmemCarveout", ctypes.c_int32),
        ("ptxVersion", ctypes.c_int32),
        ("sharedSizeBytes", ctypes.c_size_t),
    ]


def find(runtime: Runtime, handle: int) -> Function:
    """Returns the kernel of a handle."""
    return runtime.find(runtime.functions, handle, "hipErrorInvalidHandle")


def _load(runtime: Runtime, module: int, data: bytes) -> None:
    need(module, reason="a null pointer")
    target = runtime.device.target.name
    try:
        code = fly_image.read(data, "the module")
    except InputError as error:
        raise Failure("hipErrorInvalidImage", error.message) from None
    if code.target != target:
        raise Failure(
            "hipErrorNoBinaryForGpu", f"the code is for {code.target}, the device is a {target}"
        )
    loaded = runtime.emulator.load(code)
    made = runtime.keep(runtime.modules, Module, loaded=loaded, device=runtime.device.ordinal)
    runtime.device.active = True
    put_size(module, made.handle)


@function
def hipModuleLoad(runtime: Runtime, module: int, fname: int) -> None:
    name = cells.get_text(fname)
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise Failure("hipErrorFileNotFound", f"{name}: {error.strerror}") from None
    held = ctypes.create_string_buffer(data)
    hipModuleLoadData(runtime, module, ctypes.addressof(held))


@function
def hipModuleLoadData(runtime: Runtime, module: int, image: int) -> None:
    _load(runtime, module, images.code_at(image, runtime.device.target.name))


@function
def hipModuleLoadDataEx(
    runtime: Runtime, module: int, image: int, numOptions: int, options: int, optionValues: int
) -> None:
    """Writes the reason of a failure into the caller's buffer for error messages."""
    need(numOptions < MOST_OPTIONS, reason=f"{numOptions} options")
    kinds = [cells.get(options + 4 * n, ctypes.c_int32) for n in range(numOptions)]
    values = [cells.get_pointer(optionValues + 8 * n) for n in range(numOptions)]
    given = dict(zip(kinds, values, strict=True))
    log, size = given.get(ERROR_LOG, 0), given.get(ERROR_LOG_SIZE, 0) & 0xFFFF_FFFF
    if log and size:
        cells.put_text(log, "", size)
    try:
        hipModuleLoadData(runtime, module, image)
    except Failure as failure:
        if log and size:
            cells.put_text(log, failure.reason, size)
        raise


alias("hipModuleLoadFatBinary", hipModuleLoadData)


def _module(runtime: Runtime, handle: int) -> Module:
    return runtime.find(runtime.modules, handle, "hipErrorInvalidHandle")


@function
def hipModuleUnload(runtime: Runtime, module: int) -> None:
    found = _module(runtime, module)
    for handle in found.functions.values():
        del runtime.functions[handle]
    for one in found.globals.values():
        runtime.free(one)
    found.loaded.unload()
    del runtime.modules[module]


@function
def hipModuleGetFunction(runtime: Runtime, function: int, module: int, kname: int) -> None:
    need(function, reason="a null pointer")
    name = cells.get_text(kname)
    need(name, reason="an empty name")
    found = _module(runtime, module)
    if name not in found.functions:
        kernels = found.loaded.image.kernels
        need(name in kernels, "hipErrorNotFound", f"{name}; the kernels are {', '.join(kernels)}")
        try:
            prepared = found.loaded.function(name)
        except InputError as error:
            raise Failure("hipErrorNotSupported", error.message) from None
        made = runtime.keep(runtime.functions, Function, module=found, prepared=prepared)
        found.functions[name] = made.handle
    put_size(function, found.functions[name])


@function
def hipModuleGetFunctionCount(runtime: Runtime, count: int, mod: int) -> None:
    put_int(count, len(_module(runtime, mod).loaded.image.kernels))


@function
def hipModuleGetGlobal(runtime: Runtime, dptr: int, bytes: int, hmod: int, name: int) -> None:
    need(dptr or bytes, reason="a null pointer")
    wanted = cells.get_text(name)
    found = _global(runtime, _module(runtime, hmod), wanted)
    if dptr:
        put_size(dptr, found.start)
    if bytes:
        put_size(bytes, found.size)


def _global(runtime: Runtime, module: Module, name: str) -> Allocation:
    """Returns the memory of a variable: that of the loaded segment, at the host's address, which
    becomes accessible to kernels of all modules."""
    if name in module.globals:
        return module.globals[name]
    image = module.loaded.image
    symbol = image.symbols.get(name)
    if symbol is None or symbol.type != OBJECT or not symbol.section or name.endswith(".kd"):
        raise Failure("hipErrorNotFound", f"the module has no variable {name}")
    segments = (segment for segment in image.segments if segment.size)
    for segment, memory in zip(segments, module.loaded.memory, strict=True):
        # All of the segment: the file does not provide variables that begin as zeros.
        end = symbol.value + symbol.size
        if segment.address <= symbol.value and end <= segment.address + segment.size:
            start = ctypes.addressof(memory) + symbol.value - segment.address
            made = Allocation(
                start, symbol.size, GLOBAL, module.device, 0, label=f"variable {name}"
            )
            module.globals[name] = runtime.memory.add(made)
            runtime.show(module.globals[name])
            return module.globals[name]
    raise Failure("hipErrorNotFound", f"variable {name} is in no segment")


# -- attributes


def _attributes(runtime: Runtime, one: Function) -> dict[int, int]:
    kernel, target = one.prepared.kernel, runtime.devices[one.module.device].target
    version = target.amd.isa_version // 100 if target.amd else 0
    return {
        MAX_THREADS: kernel.max_flat_workgroup_size,
        SHARED_SIZE: kernel.group_segment_fixed_size,
        CONST_SIZE: 0,
        LOCAL_SIZE: kernel.private_segment_fixed_size,
        REGISTERS: kernel.vgpr_count,
        PTX_VERSION: version,
        BINARY_VERSION: version,
        CACHE_MODE: 0,
        MAX_DYNAMIC_SHARED: target.lds - kernel.group_segment_fixed_size,
        CARVEOUT: 0,
    }


@function
def hipFuncGetAttribute(runtime: Runtime, value: int, attrib: int, hfunc: int) -> None:
    need(value, reason="a null pointer")
    known = _attributes(runtime, find(runtime, hfunc))
    need(attrib in known, reason=f"attribute {attrib}")
    put_int(value, known[attrib])


@function
def hipFuncGetAttributes(runtime: Runtime, attr: int, func: int) -> None:
    need(attr, reason="a null pointer")
    found = runtime.find(runtime.functions, func, "hipErrorInvalidDeviceFunction")
    known = _attributes(runtime, found)
    made = FuncAttributes.from_address(attr)
    made.binaryVersion, made.ptxVersion = known[BINARY_VERSION], known[PTX_VERSION]
    made.cacheModeCA, made.preferredShmemCarveout = known[CACHE_MODE], known[CARVEOUT]
    made.constSizeBytes, made.localSizeBytes = known[CONST_SIZE], known[LOCAL_SIZE]
    made.maxDynamicSharedSizeBytes = known[MAX_DYNAMIC_SHARED]
    made.maxThreadsPerBlock, made.numRegs = known[MAX_THREADS], known[REGISTERS]
    made.sharedSizeBytes = known[SHARED_SIZE]


@function
def hipFuncSetAttribute(runtime: Runtime, func: int, attr: int, value: int) -> None:
    """Nothing has to be set: dynamic LDS is only limited by the chip."""
    known = _attributes(runtime, find(runtime, func))
    need(attr in (MAX_DYNAMIC_SHARED, CARVEOUT), reason=f"attribute {attr}")
    if attr == MAX_DYNAMIC_SHARED:
        need(0 <= value <= known[attr], reason=f"{value} bytes; the chip has {known[attr]} left")


@function
def hipFuncSetCacheConfig(runtime: Runtime, func: int, config: int) -> None:
    find(runtime, func)


alias("hipFuncSetSharedMemConfig", hipFuncSetCacheConfig)


@function
def hipKernelNameRef(runtime: Runtime, f: int) -> int:
    found = runtime.functions.get(f)
    return errors.address(found.prepared.kernel.name if found else "")


# -- occupancy


def resident(runtime: Runtime, one: Function, items: int, shared: int) -> int:
    """Returns how many workgroups a compute unit holds at once, 0 for one that is too large."""
    kernel: Kernel = one.prepared.kernel
    target = runtime.devices[one.module.device].target
    lds = kernel.group_segment_fixed_size + shared
    if not 0 < items <= kernel.max_flat_workgroup_size or lds > target.lds:
        return 0
    found = occupancy(target.name, kernel, items, lds)
    return found.workgroups if found else 0


@function
def hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    runtime: Runtime, numBlocks: int, f: int, blockSize: int, dynSharedMemPerBlk: int
) -> None:
    need(numBlocks and blockSize > 0, reason="no block")
    found = runtime.find(runtime.functions, f, "hipErrorInvalidDeviceFunction")
    put_int(numBlocks, resident(runtime, found, blockSize, dynSharedMemPerBlk))


@function
def hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    runtime: Runtime, numBlocks: int, f: int, blockSize: int, dynSharedMemPerBlk: int, flags: int
) -> None:
    need(flags in (0, 1), reason=f"flags {flags}")
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        runtime, numBlocks, f, blockSize, dynSharedMemPerBlk
    )


@function
def hipModuleOccupancyMaxPotentialBlockSize(
    runtime: Runtime,
    gridSize: int,
    blockSize: int,
    f: int,
    dynSharedMemPerBlk: int,
    blockSizeLimit: int,
) -> None:
    """The block with the most resident work items, and as many blocks as are resident."""
    from fly_run.hip_runtime.products import product

    need(gridSize and blockSize, reason="a null pointer")
    found = runtime.find(runtime.functions, f, "hipErrorInvalidDeviceFunction")
    kernel = found.prepared.kernel
    most = min(kernel.max_flat_workgroup_size, blockSizeLimit or kernel.max_flat_workgroup_size)
    wave = kernel.wavefront_size
    sizes = range(most - most % wave, 0, -wave) if most >= wave else [most]
    best = max(sizes, key=lambda items: items * resident(runtime, found, items, dynSharedMemPerBlk))
    blocks = resident(runtime, found, best, dynSharedMemPerBlk)
    units = product(runtime.devices[found.module.device].target).processors
    put_int(gridSize, blocks * units)
    put_int(blockSize, best)


@function
def hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
    runtime: Runtime,
    gridSize: int,
    blockSize: int,
    f: int,
    dynSharedMemPerBlk: int,
    blockSizeLimit: int,
    flags: int,
) -> None:
    need(flags in (0, 1), reason=f"flags {flags}")
    hipModuleOccupancyMaxPotentialBlockSize(
        runtime, gridSize, blockSize, f, dynSharedMemPerBlk, blockSizeLimit
    )


for _name in (
    "OccupancyMaxActiveBlocksPerMultiprocessor",
    "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "OccupancyMaxPotentialBlockSize",
):
    alias(f"hip{_name}", globals()[f"hipModule{_name}"])

"""The structures of device properties, as C declarations, and what fills them.

The text is that of hip_runtime_api.h (hipDeviceProp_tR0600) and hip_deprecated.h
(hipDeviceProp_tR0000) of HIP 7.1. `NEW` is what programs get that were compiled with HIP 6 or
newer, `OLD` what older ones get from the same name, hipGetDeviceProperties.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any

NEW = """
char name[256];
hipUUID uuid;
char luid[8];
unsigned int luidDeviceNodeMask;
size_t totalGlobalMem, sharedMemPerBlock;
int regsPerBlock, warpSize;
size_t memPitch;
int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
size_t totalConstMem;
int major, minor;
size_t textureAlignment, texturePitchAlignment;
int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
    computeMode, maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2],
    maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3],
    maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3],
    maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2], maxSurface3D[3],
    maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap,
    maxSurfaceCubemapLayered[2];
size_t surfaceAlignment;
int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
    asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize,
    persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
    globalL1CacheSupported, localL1CacheSupported;
size_t sharedMemPerMultiprocessor;
int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
    hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess,
    concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
    cooperativeLaunch, cooperativeMultiDeviceLaunch;
size_t sharedMemPerBlockOptin;
int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
    maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
size_t reservedSharedMemPerBlock;
int hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported,
    timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
unsigned int gpuDirectRDMAFlushWritesOptions;
int gpuDirectRDMAWritesOrdering;
unsigned int memoryPoolSupportedHandleTypes;
int deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers,
    reserved[63], hipReserved[32];
char gcnArchName[256];
size_t maxSharedMemoryPerMultiProcessor;
int clockInstructionRate;
hipDeviceArch_t arch;
unsigned int* hdpMemFlushCntl, hdpRegFlushCntl;
int cooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedGridDim,
    cooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedSharedMem, isLargeBar,
    asicRevision;
"""
OLD = """
char name[256];
size_t totalGlobalMem, sharedMemPerBlock;
int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate,
    memoryClockRate, memoryBusWidth;
size_t totalConstMem;
int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, computeMode,
    clockInstructionRate;
hipDeviceArch_t arch;
int concurrentKernels, pciDomainID, pciBusID, pciDeviceID;
size_t maxSharedMemoryPerMultiProcessor;
int isMultiGpuBoard, canMapHostMemory, gcnArch;
char gcnArchName[256];
int integrated, cooperativeLaunch, cooperativeMultiDeviceLaunch, maxTexture1DLinear, maxTexture1D,
    maxTexture2D[2], maxTexture3D[3];
unsigned int* hdpMemFlushCntl, hdpRegFlushCntl;
size_t memPitch, textureAlignment, texturePitchAlignment;
int kernelExecTimeoutEnabled, ECCEnabled, tccDriver, cooperativeMultiDeviceUnmatchedFunc,
    cooperativeMultiDeviceUnmatchedGridDim, cooperativeMultiDeviceUnmatchedBlockDim,
    cooperativeMultiDeviceUnmatchedSharedMem, isLargeBar, asicRevision, managedMemory,
    directManagedMemAccessFromHost, concurrentManagedAccess, pageableMemoryAccess,
    pageableMemoryAccessUsesHostPageTables;
"""

TYPES: dict[str, Any] = {
    "char": ctypes.c_char,
    "int": ctypes.c_int32,
    "unsigned int": ctypes.c_uint32,
    "size_t": ctypes.c_size_t,
    "unsigned int*": ctypes.c_size_t,
    "hipUUID": ctypes.c_uint8 * 16,
    "hipDeviceArch_t": ctypes.c_uint32,  # bits, in the order of hipDeviceArch_t
}

_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])?")


@functools.cache
def structure(text: str) -> type[ctypes.Structure]:
    """Returns the ctypes structure of a declaration."""
    fields = []
    for line in re.sub(r"\s+", " ", text).split(";"):
        kind = next((k for k in sorted(TYPES, key=len)[::-1] if line.strip().startswith(k)), "")
        for name, count in _FIELD.findall(line.strip().removeprefix(kind)):
            fields.append((name, TYPES[kind] * int(count) if count else TYPES[kind]))
    return type("Properties", (ctypes.Structure,), {"_fields_": fields})


def fill(address: int, text: str, values: dict[str, Any]) -> None:
    """Fills the structure at an address. Fields that `values` lacks are zero."""
    made = structure(text).from_address(address)
    ctypes.memset(address, 0, ctypes.sizeof(made))
    for name, *_ in type(made)._fields_:
        if (value := values.get(name)) is None:
            continue
        if isinstance(value, tuple):
            array = getattr(made, name)
            for index, one in enumerate(value):
                array[index] = one
        else:
            setattr(made, name, value)

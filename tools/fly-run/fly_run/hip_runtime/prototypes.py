"""The functions of the HIP runtime that the library exports: their C prototypes, as text.

The text is that of `hip_runtime_api.h` of HIP 7.1, one prototype per entry, without comments.
`hipError_t` is the return type where none is given. hip_ext.h declares hipExtModuleLaunchKernel,
hip_deprecated.h the functions whose names end in R0000.

Each symbol has a version, as in AMD's libamdhip64.so (hip_hcc.map), because programs that are
linked with that library refer to `hipMalloc@hip_4.2`.
"""

from __future__ import annotations

import ctypes
import functools
import re
from dataclasses import dataclass
from typing import Any

TEXT = """
# device
hipInit(unsigned int flags)
hipDriverGetVersion(int* driverVersion)
hipRuntimeGetVersion(int* runtimeVersion)
hipGetDeviceCount(int* count)
hipGetDevice(int* deviceId)
hipSetDevice(int deviceId)
hipSetValidDevices(int* device_arr, int len)
hipGetDeviceFlags(unsigned int* flags)
hipSetDeviceFlags(unsigned flags)
hipDeviceGet(hipDevice_t* device, int ordinal)
hipDeviceGetName(char* name, int len, hipDevice_t device)
hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device)
hipDeviceGetPCIBusId(char* pciBusId, int len, int device)
hipDeviceGetByPCIBusId(int* device, const char* pciBusId)
hipDeviceTotalMem(size_t* bytes, hipDevice_t device)
hipDeviceComputeCapability(int* major, int* minor, hipDevice_t device)
hipDeviceGetAttribute(int* pi, hipDeviceAttribute_t attr, int deviceId)
hipGetDeviceProperties(hipDeviceProp_tR0000* prop, int deviceId)
hipGetDevicePropertiesR0600(hipDeviceProp_t* prop, int deviceId)
hipGetDevicePropertiesR0000(hipDeviceProp_tR0000* prop, int device)
hipChooseDevice(int* device, const hipDeviceProp_tR0000* prop)
hipChooseDeviceR0000(int* device, const hipDeviceProp_tR0000* prop)
hipChooseDeviceR0600(int* device, const hipDeviceProp_t* prop)
hipDeviceSynchronize()
hipDeviceReset()
hipDeviceGetLimit(size_t* pValue, hipLimit_t limit)
hipDeviceSetLimit(hipLimit_t limit, size_t value)
hipDeviceGetCacheConfig(hipFuncCache_t* cacheConfig)
hipDeviceSetCacheConfig(hipFuncCache_t cacheConfig)
hipDeviceGetSharedMemConfig(hipSharedMemConfig* pConfig)
hipDeviceSetSharedMemConfig(hipSharedMemConfig config)
hipDeviceCanAccessPeer(int* canAccessPeer, int deviceId, int peerDeviceId)
hipDeviceEnablePeerAccess(int peerDeviceId, unsigned int flags)
hipDeviceDisablePeerAccess(int peerDeviceId)
hipDeviceGetP2PAttribute(int* value, hipDeviceP2PAttr attr, int srcDevice, int dstDevice)
hipDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority)
# contexts
hipDevicePrimaryCtxRetain(hipCtx_t* pctx, hipDevice_t dev)
hipDevicePrimaryCtxRelease(hipDevice_t dev)
hipDevicePrimaryCtxReset(hipDevice_t dev)
hipDevicePrimaryCtxGetState(hipDevice_t dev, unsigned int* flags, int* active)
hipDevicePrimaryCtxSetFlags(hipDevice_t dev, unsigned int flags)
hipCtxCreate(hipCtx_t* ctx, unsigned int flags, hipDevice_t device)
hipCtxDestroy(hipCtx_t ctx)
hipCtxPushCurrent(hipCtx_t ctx)
hipCtxPopCurrent(hipCtx_t* ctx)
hipCtxSetCurrent(hipCtx_t ctx)
hipCtxGetCurrent(hipCtx_t* ctx)
hipCtxGetDevice(hipDevice_t* device)
hipCtxGetApiVersion(hipCtx_t ctx, unsigned int* apiVersion)
hipCtxGetFlags(unsigned int* flags)
hipCtxSynchronize()
hipCtxGetCacheConfig(hipFuncCache_t* cacheConfig)
hipCtxSetCacheConfig(hipFuncCache_t cacheConfig)
hipCtxGetSharedMemConfig(hipSharedMemConfig* pConfig)
hipCtxSetSharedMemConfig(hipSharedMemConfig config)
hipCtxEnablePeerAccess(hipCtx_t peerCtx, unsigned int flags)
hipCtxDisablePeerAccess(hipCtx_t peerCtx)
# errors
hipGetLastError()
hipPeekAtLastError()
hipExtGetLastError()
const char* hipGetErrorName(hipError_t hip_error)
const char* hipGetErrorString(hipError_t hipError)
hipDrvGetErrorName(hipError_t hipError, const char** errorString)
hipDrvGetErrorString(hipError_t hipError, const char** errorString)
hipGetProcAddress(const char* symbol, void** pfn, int hipVersion, uint64_t flags,
    hipDriverProcAddressQueryResult* symbolStatus)
hipGetDriverEntryPoint(const char* symbol, void** funcPtr, unsigned long long flags,
    hipDriverEntryPointQueryResult* driverStatus)
hipProfilerStart()
hipProfilerStop()
# memory
hipMalloc(void** ptr, size_t size)
hipExtMallocWithFlags(void** ptr, size_t sizeBytes, unsigned int flags)
hipMallocManaged(void** dev_ptr, size_t size, unsigned int flags)
hipMallocAsync(void** dev_ptr, size_t size, hipStream_t stream)
hipMallocPitch(void** ptr, size_t* pitch, size_t width, size_t height)
hipMemAllocPitch(hipDeviceptr_t* dptr, size_t* pitch, size_t widthInBytes, size_t height, unsigned
    int elementSizeBytes)
hipHostMalloc(void** ptr, size_t size, unsigned int flags)
hipHostAlloc(void** ptr, size_t size, unsigned int flags)
hipMallocHost(void** ptr, size_t size)
hipMemAllocHost(void** ptr, size_t size)
hipFree(void* ptr)
hipFreeAsync(void* dev_ptr, hipStream_t stream)
hipHostFree(void* ptr)
hipFreeHost(void* ptr)
hipHostRegister(void* hostPtr, size_t sizeBytes, unsigned int flags)
hipHostUnregister(void* hostPtr)
hipHostGetDevicePointer(void** devPtr, void* hstPtr, unsigned int flags)
hipHostGetFlags(unsigned int* flagsPtr, void* hostPtr)
hipMemGetInfo(size_t* free, size_t* total)
hipMemGetAddressRange(hipDeviceptr_t* pbase, size_t* psize, hipDeviceptr_t dptr)
hipMemPtrGetInfo(void* ptr, size_t* size)
hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* ptr)
hipPointerGetAttribute(void* data, hipPointer_attribute attribute, hipDeviceptr_t ptr)
hipDrvPointerGetAttributes(unsigned int numAttributes, hipPointer_attribute* attributes, void**
    data, hipDeviceptr_t ptr)
hipPointerSetAttribute(const void* value, hipPointer_attribute attribute, hipDeviceptr_t ptr)
hipMemPrefetchAsync(const void* dev_ptr, size_t count, int device, hipStream_t stream)
hipMemAdvise(const void* dev_ptr, size_t count, hipMemoryAdvise advice, int device)
hipDeviceGetDefaultMemPool(hipMemPool_t* mem_pool, int device)
hipDeviceGetMemPool(hipMemPool_t* mem_pool, int device)
hipDeviceSetMemPool(int device, hipMemPool_t mem_pool)
hipMallocFromPoolAsync(void** dev_ptr, size_t size, hipMemPool_t mem_pool, hipStream_t stream)
hipMemPoolTrimTo(hipMemPool_t mem_pool, size_t min_bytes_to_hold)
hipMemPoolSetAttribute(hipMemPool_t mem_pool, hipMemPoolAttr attr, void* value)
hipMemPoolGetAttribute(hipMemPool_t mem_pool, hipMemPoolAttr attr, void* value)
# copies
hipMemcpy(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind)
hipMemcpyAsync(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t
    stream)
hipMemcpyWithStream(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t
    stream)
hipMemcpyHtoD(hipDeviceptr_t dst, const void* src, size_t sizeBytes)
hipMemcpyHtoDAsync(hipDeviceptr_t dst, const void* src, size_t sizeBytes, hipStream_t stream)
hipMemcpyDtoH(void* dst, hipDeviceptr_t src, size_t sizeBytes)
hipMemcpyDtoHAsync(void* dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)
hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes)
hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)
hipMemcpyPeer(void* dst, int dstDeviceId, const void* src, int srcDeviceId, size_t sizeBytes)
hipMemcpyPeerAsync(void* dst, int dstDeviceId, const void* src, int srcDevice, size_t sizeBytes,
    hipStream_t stream)
hipMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
    hipMemcpyKind kind)
hipMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t
    height, hipMemcpyKind kind, hipStream_t stream)
hipMemcpyParam2D(const hip_Memcpy2D* pCopy)
hipMemcpyParam2DAsync(const hip_Memcpy2D* pCopy, hipStream_t stream)
hipDrvMemcpy2DUnaligned(const hip_Memcpy2D* pCopy)
hipMemset(void* dst, int value, size_t sizeBytes)
hipMemsetAsync(void* dst, int value, size_t sizeBytes, hipStream_t stream)
hipMemsetD8(hipDeviceptr_t dest, unsigned char value, size_t count)
hipMemsetD8Async(hipDeviceptr_t dest, unsigned char value, size_t count, hipStream_t stream)
hipMemsetD16(hipDeviceptr_t dest, unsigned short value, size_t count)
hipMemsetD16Async(hipDeviceptr_t dest, unsigned short value, size_t count, hipStream_t stream)
hipMemsetD32(hipDeviceptr_t dest, int value, size_t count)
hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream)
hipMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height)
hipMemset2DAsync(void* dst, size_t pitch, int value, size_t width, size_t height, hipStream_t
    stream)
# modules
hipModuleLoad(hipModule_t* module, const char* fname)
hipModuleLoadData(hipModule_t* module, const void* image)
hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned int numOptions, hipJitOption*
    options, void** optionValues)
hipModuleLoadFatBinary(hipModule_t* module, const void* fatbin)
hipModuleUnload(hipModule_t module)
hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* kname)
hipModuleGetFunctionCount(unsigned int* count, hipModule_t mod)
hipModuleGetGlobal(hipDeviceptr_t* dptr, size_t* bytes, hipModule_t hmod, const char* name)
hipFuncGetAttribute(int* value, hipFunction_attribute attrib, hipFunction_t hfunc)
hipFuncGetAttributes(hipFuncAttributes* attr, const void* func)
hipFuncSetAttribute(const void* func, hipFuncAttribute attr, int value)
hipFuncSetCacheConfig(const void* func, hipFuncCache_t config)
hipFuncSetSharedMemConfig(const void* func, hipSharedMemConfig config)
const char* hipKernelNameRef(const hipFunction_t f)
hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, hipFunction_t f, int blockSize,
    size_t dynSharedMemPerBlk)
hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, hipFunction_t f, int
    blockSize, size_t dynSharedMemPerBlk, unsigned int flags)
hipModuleOccupancyMaxPotentialBlockSize(int* gridSize, int* blockSize, hipFunction_t f, size_t
    dynSharedMemPerBlk, int blockSizeLimit)
hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* gridSize, int* blockSize, hipFunction_t f,
    size_t dynSharedMemPerBlk, int blockSizeLimit, unsigned int flags)
hipOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* f, int blockSize, size_t
    dynSharedMemPerBlk)
hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, const void* f, int
    blockSize, size_t dynSharedMemPerBlk, unsigned int flags)
hipOccupancyMaxPotentialBlockSize(int* gridSize, int* blockSize, const void* f, size_t
    dynSharedMemPerBlk, int blockSizeLimit)
# launching
hipModuleLaunchKernel(hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY, unsigned int
    gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int
    sharedMemBytes, hipStream_t stream, void** kernelParams, void** extra)
hipExtModuleLaunchKernel(hipFunction_t f, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY,
    uint32_t globalWorkSizeZ, uint32_t localWorkSizeX, uint32_t localWorkSizeY, uint32_t
    localWorkSizeZ, size_t sharedMemBytes, hipStream_t hStream, void** kernelParams, void** extra,
    hipEvent_t startEvent, hipEvent_t stopEvent, uint32_t flags)
hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY,
    unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
    unsigned int sharedMemBytes, hipStream_t stream, void** kernelParams)
hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG* config, hipFunction_t f, void** params, void**
    extra)
hipLaunchKernelExC(const hipLaunchConfig_t* config, const void* fPtr, void** args)
hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void* userData)
# streams
hipStreamCreate(hipStream_t* stream)
hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags)
hipStreamCreateWithPriority(hipStream_t* stream, unsigned int flags, int priority)
hipStreamDestroy(hipStream_t stream)
hipStreamSynchronize(hipStream_t stream)
hipStreamQuery(hipStream_t stream)
hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
hipStreamGetFlags(hipStream_t stream, unsigned int* flags)
hipStreamGetPriority(hipStream_t stream, int* priority)
hipStreamGetDevice(hipStream_t stream, hipDevice_t* device)
hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void* userData, unsigned
    int flags)
hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* pCaptureStatus)
hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus* pCaptureStatus, unsigned long
    long* pId)
hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus* captureStatus_out, unsigned
    long long* id_out, hipGraph_t* graph_out, const hipGraphNode_t** dependencies_out, size_t*
    numDependencies_out)
hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
hipStreamEndCapture(hipStream_t stream, hipGraph_t* pGraph)
hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode)
hipStreamWaitValue32(hipStream_t stream, void* ptr, uint32_t value, unsigned int flags, uint32_t
    mask)
hipStreamWaitValue64(hipStream_t stream, void* ptr, uint64_t value, unsigned int flags, uint64_t
    mask)
hipStreamWriteValue32(hipStream_t stream, void* ptr, uint32_t value, unsigned int flags)
hipStreamWriteValue64(hipStream_t stream, void* ptr, uint64_t value, unsigned int flags)
hipEventCreate(hipEvent_t* event)
hipEventCreateWithFlags(hipEvent_t* event, unsigned flags)
hipEventDestroy(hipEvent_t event)
hipEventRecord(hipEvent_t event, hipStream_t stream)
hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags)
hipEventSynchronize(hipEvent_t event)
hipEventQuery(hipEvent_t event)
hipEventElapsedTime(float* ms, hipEvent_t start, hipEvent_t stop)
"""

# The versions of symbols that came after the first.
FIRST_VERSION = "hip_4.2"
VERSIONS = {
    "hip_4.3": "hipDrvMemcpy2DUnaligned hipStreamBeginCapture hipStreamEndCapture"
    " hipStreamIsCapturing",
    "hip_4.4": "hipStreamWaitValue32 hipStreamWaitValue64 hipStreamWriteValue32"
    " hipStreamWriteValue64",
    "hip_4.5": "hipStreamGetCaptureInfo hipStreamGetCaptureInfo_v2",
    "hip_5.0": "hipDrvPointerGetAttributes hipPointerGetAttribute"
    " hipThreadExchangeStreamCaptureMode",
    "hip_5.1": "hipDeviceGetDefaultMemPool hipDeviceGetMemPool hipDeviceGetUuid"
    " hipDeviceSetMemPool hipFreeAsync hipMallocAsync hipMallocFromPoolAsync"
    " hipMemPoolGetAttribute hipMemPoolSetAttribute hipMemPoolTrimTo",
    "hip_5.3": "hipDeviceSetLimit hipDrvGetErrorName hipDrvGetErrorString hipLaunchHostFunc",
    "hip_5.5": "hipModuleLaunchCooperativeKernel",
    "hip_6.0": "hipChooseDeviceR0600 hipExtGetLastError hipGetDevicePropertiesR0600",
    "hip_6.1": "hipGetProcAddress",
    "hip_6.2": "hipSetValidDevices",
    "hip_7.0": "hipDrvLaunchKernelEx hipEventRecordWithFlags hipGetDriverEntryPoint"
    " hipLaunchKernelExC hipModuleGetFunctionCount hipModuleLoadFatBinary",
}

# Types that are pointers without an asterisk.
HANDLES = (
    *("hipCtx_t", "hipModule_t", "hipFunction_t", "hipStream_t", "hipEvent_t", "hipMemPool_t"),
    *("hipDeviceptr_t", "hipStreamCallback_t", "hipHostFn_t"),
)
# C type → LLVM's type, ctypes' type. Those that are not listed are enumerations.
SIZES: dict[str, tuple[str, Any]] = {
    "size_t": ("i64", ctypes.c_uint64),
    "uint64_t": ("i64", ctypes.c_uint64),
    "unsigned long long": ("i64", ctypes.c_uint64),
    "unsigned char": ("i8 zeroext", ctypes.c_uint8),
    "unsigned short": ("i16 zeroext", ctypes.c_uint16),
    "unsigned": ("i32", ctypes.c_uint32),
    "unsigned int": ("i32", ctypes.c_uint32),
    "uint32_t": ("i32", ctypes.c_uint32),
}
ENUMERATION = ("i32", ctypes.c_int32)
# Pointers arrive as integers, 0 for a null pointer, which ctypes' c_void_p would make None.
POINTER = ("ptr", ctypes.c_uint64)

_PROTOTYPE = re.compile(r"(const char\* )?(hip\w+)\(([^)]*)\)")


@dataclass(frozen=True)
class Parameter:
    """A parameter by its C type and name."""

    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*") or self.type.removeprefix("const ") in HANDLES

    @property
    def llvm(self) -> str:
        return self._types[0]

    @property
    def ctype(self) -> Any:
        return self._types[1]

    @property
    def _types(self) -> tuple[str, Any]:
        return POINTER if self.is_pointer else SIZES.get(self.type, ENUMERATION)


@dataclass(frozen=True)
class Prototype:
    """A function. `returns_text`: it returns a string that lives as long as the library, where the
    others return an error code."""

    name: str
    parameters: tuple[Parameter, ...]
    version: str
    returns_text: bool

    @property
    def llvm(self) -> str:
        return "ptr" if self.returns_text else "i32"

    @functools.cached_property
    def callback(self) -> Any:
        """The type of ctypes callbacks with this signature."""
        returned = ctypes.c_uint64 if self.returns_text else ctypes.c_int32
        return ctypes.CFUNCTYPE(returned, *(one.ctype for one in self.parameters))


@functools.cache
def prototypes() -> dict[str, Prototype]:
    """All functions by name, in the order of the text."""
    made = {}
    versions = {name: version for version, names in VERSIONS.items() for name in names.split()}
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    for match in _PROTOTYPE.finditer(re.sub(r"\s+", " ", "\n".join(lines))):
        returns, name, parameters = match.groups()
        split = [text.strip().rpartition(" ") for text in parameters.split(",") if text.strip()]
        made[name] = Prototype(
            name,
            tuple(Parameter(kind, label) for kind, _, label in split),
            versions.get(name, FIRST_VERSION),
            bool(returns),
        )
    return made

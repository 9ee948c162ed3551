"""Launches the kernels of a folder on the first GPU and compares their results.

python run.py [FOLDER] [--ptx]      --ptx has the driver compile the PTX instead of the cubin

It needs NumPy and NVIDIA's driver (libcuda). A line for each case; exit status 1 if one is wrong.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

MOST_DYNAMIC = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
DEFAULT_SHARED = 48 << 10


class Driver:
    """The driver API, with an exception for each error."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self("cuCtxSetCurrent", self.context)
        name = ctypes.create_string_buffer(100)
        self("cuDeviceGetName", name, 100, device)
        print(f"device: {name.value.decode()}")

    def __call__(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'').decode()} ({status})")

    def allocate(self, size: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer


def run(driver: Driver, folder: Path, case: dict, use_ptx: bool) -> str:
    """Runs a case; returns what is wrong, or ""."""
    name = case["name"]
    path = folder / f"{name}.cubin"
    if use_ptx or not path.exists():
        path = folder / f"{name}.ptx"
    module = ctypes.c_void_p()
    driver("cuModuleLoadData", ctypes.byref(module), path.read_bytes() + b"\0")
    arrays = {one["name"]: contents(folder, name, one) for one in case["arrays"]}
    memory = {}
    for key, array in arrays.items():
        memory[key] = driver.allocate(array.nbytes)
        size = ctypes.c_size_t(array.nbytes)
        driver("cuMemcpyHtoD_v2", memory[key], ctypes.c_void_p(array.ctypes.data), size)
    for launch in case["launches"]:
        start(driver, module, launch, memory)
    driver("cuCtxSynchronize")
    wrong = []
    for one in case["arrays"]:
        key = one["name"]
        array = arrays[key]
        size = ctypes.c_size_t(array.nbytes)
        driver("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), memory[key], size)
        driver("cuMemFree_v2", memory[key])
        if one["expected"]:
            expected = np.load(folder / f"{name}.{one['expected']}.expected.npy")
            if text := difference(array, expected, case):
                wrong.append(f"{one['expected']}: {text}")
    driver("cuModuleUnload", module)
    return "; ".join(wrong)


def contents(folder: Path, name: str, one: dict) -> np.ndarray:
    """An array before the run: an argument, or what the program allocates."""
    if "shape" in one:
        return np.zeros(one["shape"], one["dtype"])
    return np.load(folder / f"{name}.{one['name']}.npy")


def start(driver: Driver, module: ctypes.c_void_p, launch: dict, memory: dict) -> None:
    function = ctypes.c_void_p()
    driver("cuModuleGetFunction", ctypes.byref(function), module, launch["kernel"].encode())
    if launch["shared"] > DEFAULT_SHARED:
        driver("cuFuncSetAttribute", function, MOST_DYNAMIC, launch["shared"])
    values = []
    for argument in launch["arguments"]:
        if "array" in argument:
            address = memory[argument["array"]].value + argument["offset"]
            values.append(ctypes.c_uint64(address))
        else:
            data = bytes.fromhex(argument["bytes"])
            values.append((ctypes.c_char * len(data)).from_buffer_copy(data))
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    sizes = [*launch["grid"], *launch["block"], launch["shared"]]
    driver("cuLaunchKernel", function, *sizes, None, pointers, None)


def difference(found: np.ndarray, expected: np.ndarray, case: dict) -> str:
    """Returns how an array differs from the expected one, or ""."""
    if found.dtype.kind != "f":
        count = int((found != expected).sum())
        first = np.argwhere(found != expected)[:1].tolist()
        return f"{count} elements differ, the first at {first}" if count else ""
    if case["ulp"]:
        return by_ulp(found, expected, case["ulp"])
    exact = expected.astype(found.dtype)
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(float) - expected)
        near = error <= case["atol"] + case["rtol"] * np.abs(expected)
    bad = ~(same | near)
    at = np.argwhere(bad)[:1]
    if not len(at):
        return ""
    place = tuple(at[0])
    return f"{int(bad.sum())} differ, at {place} {found[place]!r} for {expected[place]!r}"


def by_ulp(found: np.ndarray, expected: np.ndarray, most: float) -> str:
    """Compares with f64, row by row; prints each row's greatest error."""
    errors, wrong = [], []
    for row, (values, exact) in enumerate(zip(found, expected, strict=True)):
        with np.errstate(all="ignore"):
            rounded = exact.astype(np.float32)
            unit = 2.0 ** (np.maximum(np.floor(np.log2(np.abs(exact))), -126) - 23)
            error = np.abs(values.astype(np.float64) - exact) / unit
        special = ~np.isfinite(rounded) | (rounded == 0)
        equal = (values == rounded) | (np.isnan(values) & np.isnan(rounded))
        tiny = np.abs(values) <= 2.0**-149
        if not (equal | tiny)[special].all():
            wrong.append(f"row {row}: special values")
        errors.append(float(np.nanmax(np.where(special, 0, error))))
        if errors[-1] > most:
            wrong.append(f"row {row}: {errors[-1]:.2f} ULP")
    print("  ULP by row:", " ".join(f"{error:.2f}" for error in errors))
    return "; ".join(wrong)


def main(words: list[str]) -> int:
    use_ptx = "--ptx" in words
    folders = [word for word in words if not word.startswith("--")]
    folder = Path(folders[0]) if folders else Path(__file__).parent
    manifest = json.loads((folder / "manifest.json").read_text())
    driver = Driver()
    failures = 0
    for case in manifest["cases"]:
        try:
            wrong = run(driver, folder, case, use_ptx)
        except RuntimeError as error:
            wrong = str(error)
        failures += bool(wrong)
        print(f"{case['name']:24} {'WRONG: ' + wrong if wrong else 'ok'}", flush=True)
    print(f"{len(manifest['cases']) - failures} of {len(manifest['cases'])} right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

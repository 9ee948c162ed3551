"""Compares `fly_run.hip_runtime` with HIP's headers, of which Triton's wheel has a copy.

    PYTHONPATH=tests python -m triton_suite.headers .peers/lib/python*/site-packages/triton

Compared are the prototypes, the structures of properties, and the numbers of errors, of attributes
of devices, and of functions that have a newer version.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from fly_run.hip_runtime import errors, products, structures
from fly_run.hip_runtime.prototypes import prototypes

FOLDER = "backends/amd/include/hip"
# Attributes whose name is not that of a field with another first letter.
OTHER_NAMES = {
    "EccEnabled": "ECCEnabled",
    "ComputeCapabilityMajor": "major",
    "ComputeCapabilityMinor": "minor",
    "MaxPitch": "memPitch",
    "MultiprocessorCount": "multiProcessorCount",
    "PciBusId": "pciBusID",
    "MaxRegistersPerBlock": "regsPerBlock",
    "MaxRegistersPerMultiprocessor": "regsPerMultiprocessor",
    "MaxSharedMemoryPerBlock": "sharedMemPerBlock",
    "MaxSharedMemoryPerMultiprocessor": "maxSharedMemoryPerMultiProcessor",
    "TotalConstantMemory": "totalConstMem",
    "CanUseStreamWaitValue": "streamPrioritiesSupported",
    "PhysicalMultiProcessorCount": "multiProcessorCount",
    "FineGrainSupport": "hostNativeAtomicSupported",
    "WallClockRate": "clockInstructionRate",
}


def text(path: Path) -> str:
    found = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", found))


def enumeration(header: str, name: str) -> dict[str, int]:
    match = re.search(r"typedef enum[^{;]*\{([^}]*)\} ?" + name + " ?;", header)
    assert match is not None, name
    made: dict[str, int] = {}
    value = -1
    for entry in filter(None, (one.strip() for one in match[1].split(","))):
        label, _, given = (one.strip() for one in entry.partition("="))
        value = made.get(given, value + 1) if not given.isdecimal() else int(given)
        made[label] = value
    return made


def wrong_prototypes(header: str) -> Iterator[str]:
    for one in prototypes().values():
        # Macros rename functions whose structures have changed.
        name = one.name.removesuffix("R0600")
        matches = re.findall(r"([\w ]+\*?) " + name + r" ?\(([^;{]*?)\) ?;", header)
        shown = [f"{parameter.type} {parameter.name}" for parameter in one.parameters]
        found = []
        for returned, parameters in matches:
            plain = re.sub(r"__dparm\([^)]*\)|\b(?:enum|struct) | = [^,]*", "", parameters)
            split = [word.strip() for word in plain.split(",") if word.strip() not in ("", "void")]
            found.append(split)
            if returned.strip().endswith("char*") != one.returns_text:
                yield f"{one.name} returns {returned}"
        if not name.endswith("R0000"):
            shown = [word.replace("_tR0000*", "_t*") for word in shown]
        if one.name != "hipExtModuleLaunchKernel" and shown not in found:
            yield f"{one.name}: {shown}, the header has {found}"


def wrong_structures(header: str, deprecated: str) -> Iterator[str]:
    for name, declared, ours in (
        ("hipDeviceProp_t", header, structures.NEW),
        ("hipDeviceProp_tR0000", deprecated, structures.OLD),
    ):
        match = re.search(rf"typedef struct {name} \{{([^}}]*)\}}", declared)
        assert match is not None, name
        if fields(match[1]) != fields(ours):
            yield f"{name} differs"


def fields(declarations: str) -> list[tuple[str, str]]:
    """The fields as (type, name[size])."""
    made = []
    for line in filter(None, (one.strip() for one in declarations.split(";"))):
        match = re.fullmatch(r"((?:unsigned )?\w+\*?) (.*)", re.sub(r"\s+", " ", line))
        assert match is not None, line
        made += [(match[1], name.strip()) for name in match[2].split(",")]
    return made


def wrong_numbers(header: str) -> Iterator[str]:
    codes = enumeration(header, "hipError_t")
    codes.pop("hipErrorTbd")
    if codes != errors.NUMBERS:
        yield f"errors: {set(codes.items()) ^ set(errors.NUMBERS.items())}"
    attributes = enumeration(header, "hipDeviceAttribute_t")
    for name, number in attributes.items():
        place = products.ATTRIBUTES.get(number)
        label = name.removeprefix("hipDeviceAttribute")
        if place is None or label.endswith("Begin"):
            continue
        if isinstance(place, tuple):
            axes = "maxThreadsDim: MaxBlockDimX MaxBlockDimY MaxBlockDimZ; MaxThreadsDim"
            axes += "; maxGridSize: MaxGridDimX MaxGridDimY MaxGridDimZ"
            right = re.search(rf"\b{label}\b", axes) is not None
            right &= "XYZ".find(label[-1]) in (-1, place[1])
        else:
            right = OTHER_NAMES.get(label, label[0].lower() + label[1:]) == place
        if not right:
            yield f"attribute {number} is {name}, not {place}"
    names = {number: name for name, number in attributes.items()}
    for number, name in ((products.XCCS, "NumberOfXccs"), (products.LAST_AMD, "PciChipId")):
        if names.get(number) != f"hipDeviceAttribute{name}":
            yield f"attribute {number} is {names.get(number)}"


def main() -> int:
    folder = Path(sys.argv[1], FOLDER)
    header, deprecated = (text(folder / name) for name in ("hip_runtime_api.h", "hip_deprecated.h"))
    wrong = [
        *wrong_prototypes(f"{header} {deprecated}"),
        *wrong_structures(header, deprecated),
        *wrong_numbers(header),
    ]
    print(*wrong, f"{len(prototypes())} prototypes: {len(wrong)} differences", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

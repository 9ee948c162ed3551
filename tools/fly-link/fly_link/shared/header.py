"""The C header of a library, for C99 and C++, with DLPack's structures if dlpack.h is not there."""

from __future__ import annotations

from fly_host.native.c_interface.results import outs
from fly_host.program import Operand, Parameter, Program, Scalar, Tensor
from fly_host.refusals import describe
from fly_numerics.element_types import ELEMENT_TYPES

ABI = 1
# Of C99, C++ and both's successors.
_WORDS = """\
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class compl concept const const_cast consteval constexpr constinit continue co_await
co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
volatile wchar_t while xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())

_DLPACK = """\
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
/* The part of DLPack (https://dmlc.github.io/dlpack) that is used here. A program that uses more of
   it includes dlpack.h before this header. */
typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLROCM = 10
} DLDeviceType;

typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6
} DLDataTypeCode;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code;   /* a DLDataTypeCode */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;     /* in elements; NULL for C order */
  uint64_t byte_offset; /* of the first element, from data */
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#endif
"""

_TEXT = """\
/* {entry}: made by fly-link, for {targets}. */
#ifndef {guard}
#define {guard}

#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

{dlpack}
#define {upper}_ABI {abi}

#ifdef __cplusplus
extern "C" {{
#endif

/* {signature}

{parameters}

   All tensors are on one device, which decides what runs. On a GPU the work is in the order of
   `{stream}`, a CUstream or a hipStream_t (NULL: the default stream), and may not have ended when
   the function returns; on the CPU it has ended.{results}

   Returns 0, or what is wrong; {entry}_error() then says more:
     1  an argument does not fit: its dtype, shape, strides, device; nothing was launched, unless
        what is wrong depends on a loop of the program
     2  the call is wrong: a null pointer
     3  something is missing: a driver, a device, code for it, memory
     4  a function of the driver failed, or a kernel
   Threads may call it at the same time. */
int {entry}({declared});

/* What was wrong with this thread's last call; "" if nothing. Valid until its next call. */
const char *{entry}_error(void);

/* The targets that the library has code for: "{targets}". */
const char *{entry}_targets(void);

/* The version of this interface: {upper}_ABI when the library was made. */
int {entry}_abi(void);

#ifdef __cplusplus
}}
#endif

#endif
"""


def text(program: Program, targets: str) -> str:
    """The header of a library for `targets`, as they are listed."""
    entry, results = program.entry, outs(program)
    names = parameter_names(program)
    given = [
        _declared(parameter, names[n]) for n, parameter in enumerate(program.parameters)
    ]  # fmt: skip
    made = [
        _result(operand, name)
        for operand, name in zip(results.values(), names[len(given) :], strict=False)
    ]
    declared = [*given, *made, f"void *{names[-1]}"]
    told = [
        f"   {name}: {_described(parameter)}"
        for name, parameter in zip(names, program.parameters, strict=False)
    ]
    told += [
        f"   {name}: where the result goes, {_result_described(program, operand)}"
        for name, operand in zip(names[len(given) :], results.values(), strict=False)
    ]
    upper = entry.upper()
    return _TEXT.format(
        entry=entry,
        upper=upper,
        guard=f"{upper}_FLY_H",
        targets=targets,
        dlpack=_DLPACK,
        abi=ABI,
        signature=f"{entry}({', '.join(names)})",
        parameters="\n".join(told),
        stream=names[-1],
        results=_RESULTS if any(one.kind != "integer" for one in results.values()) else "",
        declared=_wrapped(f"int {entry}(", declared),
    )


_RESULTS = """

   A result is the caller's, also if another one could not be made: call its deleter, on a GPU when
   the device has done what uses it. It is NULL if the function fails before. It is in the memory of
   an argument where the program returns that."""


def parameter_names(program: Program) -> list[str]:
    """The names of the C function's parameters: the program's, the results', the stream's."""
    found: list[str] = []
    for name in (*(p.name for p in program.parameters), *outs(program), "stream"):
        plain = name if name.isascii() and name.isidentifier() else f"p{len(found)}"
        while plain in _KEYWORDS or plain in found:
            plain += "_"
        found.append(plain)
    return found


def _declared(parameter: Parameter, name: str) -> str:
    if isinstance(parameter, Tensor):
        return f"const DLTensor *{name}"
    if not isinstance(parameter, Scalar):
        return f"void *{name}"
    row = ELEMENT_TYPES[parameter.dtype]
    if row.kind == "bool":
        return f"bool {name}"
    if row.kind == "float":
        return f"{'double' if row.bits == 64 else 'float'} {name}"
    return f"{row.kind}{row.bits}_t {name}"


def _result(operand: Operand, name: str) -> str:
    return f"int64_t *{name}" if operand.kind == "integer" else f"DLManagedTensor **{name}"


def _described(parameter: Parameter) -> str:
    if not isinstance(parameter, Scalar | Tensor):
        return "a stream; NULL is the call's"
    return describe(parameter)


def _result_described(program: Program, operand: Operand) -> str:
    if operand.kind == "integer":
        return "an integer"
    name = operand.value if operand.kind == "tensor" else operand.value.tensor
    every = (*program.tensors, *(p for p in program.parameters if isinstance(p, Tensor)))
    tensor = next(one for one in every if one.name == name)
    shape = operand.value.shape if operand.kind == "view" else getattr(tensor, "shape", None)
    rank = len(shape) if shape is not None else getattr(tensor, "rank", 0)
    return f"{tensor.dtype} of {rank} dimension{'' if rank == 1 else 's'}"


def _wrapped(start: str, words: list[str]) -> str:
    """The words with commas, in lines of 100 columns."""
    lines, line = [], ""
    for n, word in enumerate(words):
        word += "," if n < len(words) - 1 else ""
        room = 97 - (len(start) if not lines else 4)
        if line and len(line) + 1 + len(word) > room:
            lines.append(line)
            line = ""
        line += f" {word}" if line else word
    return "\n    ".join([*lines, line])

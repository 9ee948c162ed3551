"""Runs math ops, lowered for an NVIDIA target, on the host: the formulas are plain LLVM IR.

The functions that the hardware's approximations call are not available here.
"""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from fly_common.programs import toolchain
from fly_opt import Options, compile

LOOP = """
module {{ gpu.module @kernels {{ func.func @f({arguments}, %r: !llvm.ptr, %n: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {{
    %at = arith.index_cast %i : index to i64
    {loads}
    %y = {op} {values} : {kind}{kinds}
    %to = llvm.getelementptr %r[%at] : (!llvm.ptr, i64) -> !llvm.ptr, {kind}
    llvm.store %y, %to : {kind}, !llvm.ptr
  }}
  return
}} }} }}
"""
LOAD = """%p{n} = llvm.getelementptr %a{n}[%at] : (!llvm.ptr, i64) -> !llvm.ptr, {kind}
    %x{n} = llvm.load %p{n} : !llvm.ptr -> {kind}"""
PASSES = (
    "builtin.module(fly-set-target{chip=sm_90a},fly-select-math,gpu.module(convert-scf-to-cf),"
    "gpu.module(convert-gpu-to-nvvm{index-bitwidth=64}),convert-math-to-nvvm,convert-cf-to-llvm,"
    "convert-arith-to-llvm,reconcile-unrealized-casts,fly-emit-llvm)"
)


@functools.cache
def function(op: str, operands: int, kind: str) -> ctypes._CFuncPtr:
    """Compiles a loop over arrays that applies a math op of `kind` to each element."""
    numbers = range(operands)
    text = LOOP.format(
        op=op,
        kind=kind,
        kinds=f", {kind}" if op == "math.fpowi" else "",
        arguments=", ".join(f"%a{n}: !llvm.ptr" for n in numbers),
        loads="\n    ".join(LOAD.format(n=n, kind=kind) for n in numbers),
        values=", ".join(f"%x{n}" for n in numbers),
    )
    made = compile(text.encode(), Options(passes=PASSES)).decode()
    made = re.sub(r"^target (triple|datalayout).*$", "", made, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        obj, library = Path(folder, "f.o"), Path(folder, "f.so")
        words = ["-O2", "-filetype=obj", "-relocation-model=pic", "-o", str(obj), "-"]
        done = toolchain.run_program("llc", words, made.encode())
        assert not done.returncode, done.stderr.decode()
        lld = toolchain.find_program("ld.lld")
        subprocess.run([lld, "-shared", "-o", library, obj], check=True, capture_output=True)
        return ctypes.CDLL(str(library)).f


def applied(op: str, *arrays: np.ndarray, kind: str = "f32") -> np.ndarray:
    """Returns the op's results for the elements of arrays of one length."""
    result = np.empty_like(arrays[0])
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, result)]
    function(op, len(arrays), kind)(*pointers, ctypes.c_int64(len(result)))
    return result

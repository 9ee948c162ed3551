"""LLVM's intrinsics that every target has, and that mean the same on the host."""

from __future__ import annotations

import re

_MATHEMATICS = (
    *("fma", "fmuladd", "sqrt", "fabs", "minnum", "maxnum", "minimum", "maximum", "minimumnum"),
    *("maximumnum", "copysign", "floor", "ceil", "trunc", "rint", "nearbyint", "round"),
    *("roundeven", "sin", "cos", "tan", "tanh", "exp", "exp2", "exp10", "log", "log2", "log10"),
    *("pow", "powi", "ldexp", "frexp", "lrint", "llrint", "lround", "llround", "canonicalize"),
    *("is\\.fpclass", "asin", "acos", "atan", "atan2", "sinh", "cosh", "arithmetic\\.fence"),
)
_INTEGERS = (
    *("ctpop", "ctlz", "cttz", "bswap", "bitreverse", "fshl", "fshr", "umin", "umax", "smin"),
    *("smax", "abs", "scmp", "ucmp"),
    *(f"[us]{name}\\.(?:sat|with\\.overflow)" for name in ("add", "sub")),
    *("[us]mul\\.with\\.overflow", "[us]shl\\.sat", "fpto[us]i\\.sat", "vector\\.reduce\\.\\w+"),
)
_MEMORY = ("memcpy", "memcpy\\.inline", "memmove", "memset", "memset\\.inline")
_OTHERS = (
    *("lifetime\\.\\w+", "assume", "expect", "dbg\\.\\w+", "is\\.constant", "objectsize", "trap"),
    *("debugtrap", "ubsantrap", "stacksave", "stackrestore", "ptrmask", "donothing"),
    *("sideeffect", "prefetch", "experimental\\.noalias\\.scope\\.decl", "invariant\\.\\w+"),
    *("launder\\.invariant\\.group", "strip\\.invariant\\.group", "readcyclecounter"),
    *("convert\\.\\w+\\.fp16", "annotation", "var\\.annotation", "fake\\.use"),
)
GENERIC = re.compile(
    rf"llvm\.(?:{'|'.join((*_MATHEMATICS, *_INTEGERS, *_MEMORY, *_OTHERS))})(?:\.|$)"
)
COPIES = re.compile(r"@llvm\.(memcpy|memmove|memset)(?:\.inline)?\.[\w.]+\(")
TRAPS = ("@llvm.trap(", "@llvm.debugtrap(", "@llvm.ubsantrap(")

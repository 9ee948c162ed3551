"""LLVM IR → object, assembly or MIR: runs `llc`, reads the target from the IR, and supports
insertion points."""

from fly_llc.codegen.options import Options
from fly_llc.stage import compile, fingerprint

__all__ = ["Options", "compile", "fingerprint"]

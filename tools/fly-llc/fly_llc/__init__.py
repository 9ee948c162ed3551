"""LLVM IR → object, assembly or MIR, with `llc` and with insertion points."""

from fly_llc.codegen.options import Options
from fly_llc.stage import compile, fingerprint

__all__ = ["Options", "compile", "fingerprint"]

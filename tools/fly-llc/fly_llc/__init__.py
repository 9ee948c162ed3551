"""LLVM IR → object, assembly or MIR: `llc`, with the target read from the IR and with doors."""

from fly_llc.codegen.stage import Options, compile, fingerprint

__all__ = ["Options", "compile", "fingerprint"]

"""fly-trace: Python → MLIR. The language, the AST rewriter, signatures.

`trace.trace_function` and `trace.trace_file` give a module's text; `expr` is the language.
"""


def fingerprint() -> str:
    """What identifies this version of the tracer for a cache key. Imports nothing heavy."""
    from fly_trace import fingerprint as module

    return module.fingerprint()

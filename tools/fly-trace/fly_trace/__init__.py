"""fly-trace: Python → MLIR. The language, the AST rewriter, signatures.

`trace.trace_function` and `trace.trace_file` return a module's text; `expr` is the language.
"""


def fingerprint() -> str:
    """Identifies this version of the tracer for cache keys: the sources that affect the module's
    text, and MLIR's bindings. Imports nothing heavy."""
    from fly_store import identity

    packages = ("fly_trace", "fly_dialect", *identity.SHARED)
    return f"{identity.sources(*packages)} {identity.bindings()}"

"""fly-trace: Python → MLIR. The language, the AST rewriter, signatures.

`trace.trace_function` and `trace.trace_file` give a module's text; `expr` is the language.
"""


def fingerprint() -> str:
    """What identifies this version of the tracer for a cache key: the sources that shape the
    module's text, and MLIR's bindings. Imports nothing heavy."""
    from fly_store import identity

    packages = ("fly_trace", "fly_dialect", *identity.SHARED)
    return f"{identity.sources(*packages)} {identity.bindings()}"

"""What is made of a traced module: `MlirCompiler` makes it, `CompiledArtifact` holds it."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fly_common.errors import UsageError

from fly.call.compiled import Compiled
from fly.call.reports import compile_reports
from fly.flydsl.utils import env

if TYPE_CHECKING:
    from fly.chains.chain import Chain, Prefetch

__all__ = ["CompiledArtifact", "MlirCompiler"]


class _Given(threading.local):
    """The chain of the function that is compiled, with its programs that were started before."""

    chain: Chain | None = None
    prefetch: Prefetch | None = None


_given = _Given()


@contextmanager
def through(chain: Chain, prefetch: Prefetch) -> Iterator[None]:
    """`MlirCompiler.compile` uses these."""
    _given.chain, _given.prefetch = chain, prefetch
    try:
        yield
    finally:
        _given.chain = _given.prefetch = None


class MlirCompiler:
    """The chain behind a traced module. Every host function is compiled by `compile`, which a
    program may replace: what that returns instead of code can't be launched."""

    @classmethod
    def compile(
        cls,
        module: Any,
        *,
        arch: str = "",
        func_name: str = "",
        link_libs: Any = None,
    ) -> Compiled:
        """The code of a module of the dialect `fly`, given as text or as a module of MLIR.

        arch: the chip, by default that of the environment. func_name: what FLYDSL_DUMP_IR calls its
        folder if the module has not one kernel.
        """
        from fly.chains.chain import Prefetch
        from fly.chains.chain import chain as _chain
        from fly.flydsl.runtime.device import get_rocm_arch

        if link_libs:
            raise UsageError(
                "MlirCompiler.compile links no libraries of bitcode",
                hint="pass functions of C by fx.ffi, or a stage of your own to fly.chain",
            )
        text = module if isinstance(module, bytes) else str(module).encode()
        chain = _given.chain or _chain(arch or get_rocm_arch())
        with _given.prefetch or Prefetch(chain) as started:
            data = compile_reports.compile(chain, text, started)
        made = Compiled(data, module=text, chain=chain)
        if env.debug.dump_ir:
            dump(made, text, chain, func_name)
        return made


_KERNEL = re.compile(r"^\s*gpu\.func @(\w+)\(", re.MULTILINE)


def dump(made: Compiled, module: bytes, chain: Chain, name: str) -> Path:
    """Writes the text after each stage to a folder of FLYDSL_DUMP_DIR, with numbers in their order:
    00_origin.mlir, 01_fly-opt-py.ll, …, and the assembly as NN_final_isa.s. Returns the folder."""
    from fly.chains.chain import results

    kernels = _KERNEL.findall(module.decode())
    chosen = kernels[0] if len(kernels) == 1 else name or "module"
    folder = Path(env.debug.dump_dir).resolve() / re.sub(r"[^\w.-]", "_", chosen)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "00_origin.mlir").write_bytes(module)
    count = 0
    for count, (stage, data) in enumerate(results(chain, module), 1):
        (folder / f"{count:02}_{stage.name}{stage.suffix}").write_bytes(data)
    assembly = made.ir("asm")
    assert isinstance(assembly, str)
    (folder / f"{count + 1:02}_final_isa.s").write_text(assembly)
    print(f"[flydsl.compile] FLYDSL_DUMP_IR=1 dir={folder}")
    return folder


@functools.cache
def _plain(module: bytes) -> str:
    """The module with MLIR's own names of values, and with locations."""
    from fly_dialect import dialect as fly
    from fly_dialect import text

    read = text.read(module.decode(), fly.new_context())
    return text.from_generic(read.operation.get_asm(enable_debug_info=True, assume_verified=True))


class CompiledArtifact:
    """What `@flyc.jit` made for arguments of one kind: `source_ir` is the traced module, `ir` the
    LLVM IR that code generation got, `compiled` the code: None for a function that does nothing."""

    def __init__(self, compiled: Any, source: bytes):
        self.compiled = compiled
        self._source = source

    @property
    def source_ir(self) -> str:
        return _plain(self._source)

    @property
    def ir(self) -> str:
        if not isinstance(self.compiled, Compiled):
            return self.source_ir if self.compiled is None else str(self.compiled)
        return str(self.compiled.ir("opt.ll"))

    def export_to_c(self, folder: str, name: str, prefix: str = "") -> None:
        """Writes NAME.so, a library for C programs, and NAME.h to a folder: docs/c-libraries.md."""
        from fly_common.diagnostics import warner
        from fly_common.filter import write_atomically
        from fly_link.options import Options
        from fly_link.shared.building import make

        if prefix:
            raise UsageError("export_to_c has no prefix of functions: they are named as in Python")
        if not isinstance(self.compiled, Compiled):
            raise UsageError("there is no code to export: the function launches nothing")
        made: Any = self.compiled.ir("o")
        library = make([made], [name], for_cpu=False, options=Options(), warn=warner("fly.flydsl"))
        at = Path(folder)
        at.mkdir(parents=True, exist_ok=True)
        write_atomically(at / f"{name}.so", library.data)
        write_atomically(at / f"{name}.h", library.header.encode())

    def dump(self, compiled: bool = True) -> None:
        """Prints `ir`, or `source_ir`."""
        print(self.ir if compiled else self.source_ir)

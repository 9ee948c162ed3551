"""LLVM IR → a shared library: by llvmlite in this process where it can be imported, else by LLVM's
programs `opt` and `llc`; then by `ld.lld`, or by the system's `ld` where LLVM is not installed.

Both make the same kind of library from the same text, for any processor of the architecture. Every
failure is Unavailable.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from fly_common.errors import FlyError, MissingError

from fly_host.native.specialisation import Options
from fly_host.native.unavailable import NotCompiled, Unavailable

# Machine → triple, and the oldest processor of that architecture.
TARGETS = {
    "x86_64": ("x86_64-unknown-linux-gnu", "x86-64"),
    "aarch64": ("aarch64-unknown-linux-gnu", "generic"),
}
# What a launcher gains by: values in registers, less of them, fewer blocks. The other passes of -O2
# take five times as long and find nothing more; nor do the slower ways of instruction selection: on
# x86-64 a call is then 5 ns faster, of 110, and compiling takes 10 ms more.
# `opt` would fail where instcombine finds something the second time, but for its option.
SHORT = ("sroa", "instcombine<no-verify-fixpoint>", "simplifycfg")
LINK = ["-shared", "-z", "now", "-z", "noexecstack", "--build-id=none"]
IN_A_PIPE = [*LINK, "-o", "-", "/dev/stdin"]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def target() -> tuple[str, str]:
    """The triple and the processor to compile for."""
    found = TARGETS.get(platform.machine())
    if found is None or platform.system() != "Linux":
        raise Unavailable(f"no launchers for {platform.machine()} on {platform.system()}")
    return found


def _available(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Turns whatever goes wrong into Unavailable: a launcher is never needed."""

    @functools.wraps(function)
    def guarded(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return function(*args, **kwargs)
        except Unavailable:
            raise
        except FlyError as error:
            raise NotCompiled(error.message) from error
        except Exception as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise NotCompiled(f"compiling the launcher failed: {reason}") from error

    return guarded


def identity(options: Options) -> str:
    """What identifies the compiler, for a key."""
    version = _llvmlite() if options.in_process else None
    if version is not None:
        return f"llvmlite {version}"
    return _program_identity()


@_available
def _program_identity() -> str:
    from fly_store.identity import program

    return program("llc")


@functools.cache
def _llvmlite() -> str | None:
    """The version of llvmlite, which is not imported for that; None where there is none."""
    from importlib import metadata, util

    try:
        return metadata.version("llvmlite") if util.find_spec("llvmlite") else None
    except (metadata.PackageNotFoundError, ValueError):
        return None


@_available
def library(text: str, options: Options) -> bytes:
    """The shared library of a module."""
    from fly_common.programs import prefetch, toolchain

    try:
        linker = toolchain.find_program("ld.lld")
    except MissingError:
        from shutil import which

        if (path := which("ld")) is None:
            raise
        return _linked_by(path, _machine_code(text, options))
    with prefetch.Programs() as programs:
        # It loads its own libraries while LLVM works here.
        programs.start([(linker, IN_A_PIPE)])
        made = _machine_code(text, options)
        return _checked("ld.lld", toolchain.run_program("ld.lld", IN_A_PIPE, made))


def _linked_by(path: str, made: bytes) -> bytes:
    """By binutils' linker, which works on files: for machines that only run what was compiled
    elsewhere."""
    import subprocess
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="fly-") as folder:
        source, result = os.path.join(folder, "launcher.o"), os.path.join(folder, "launcher.so")
        with open(source, "wb") as file:
            file.write(made)
        done = subprocess.run(
            [path, *LINK, "-o", result, source], stdin=subprocess.DEVNULL, capture_output=True
        )
        _checked("ld", done)
        with open(result, "rb") as file:
            return file.read()


@_available
def optimised(text: str, options: Options) -> str:
    """The module behind LLVM's passes, as text."""
    if _binding(options) is None:
        return _program("opt", ["-S", *_passes(options)], text.encode()).decode()
    module, _ = _optimise(text, options)
    return str(module)


def _machine_code(text: str, options: Options) -> bytes:
    if _binding(options) is None:
        bitcode = _program("opt", _passes(options), text.encode())
        words = [f"-O{_selection(options)}", "-filetype=obj", "-relocation-model=pic"]
        return _program("llc", [*words, *_words(), "-o", "-", "-"], bitcode)
    module, machine = _optimise(text, options)
    return machine.emit_object(module)


def _words() -> list[str]:
    triple, processor = target()
    return [f"-mtriple={triple}", f"-mcpu={processor}"]


def _passes(options: Options) -> list[str]:
    names = f"default<O{options.opt_level}>"
    if options.opt_level == 1:
        names = f"function({','.join(SHORT)})"
    return [f"-passes={names}", *_words(), "-o", "-", "-"]


def _selection(options: Options) -> int:
    """The level of instruction selection and register allocation."""
    return options.opt_level if options.opt_level > 1 else 0


def _program(name: str, words: list[str], data: bytes) -> bytes:
    from fly_common.programs import toolchain

    return _checked(name, toolchain.run_program(name, words, data))


def _checked(name: str, done: Any) -> bytes:
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        raise NotCompiled(f"{name} does not accept the launcher: {told[0] if told else ''}")
    return done.stdout


def _binding(options: Options) -> Any:
    """llvmlite's module, None where it is not used."""
    if not options.in_process or _llvmlite() is None:
        return None
    return _imported()


@functools.cache
def _imported() -> Any:
    try:
        from llvmlite import binding
    except (ImportError, OSError):
        return None
    try:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    except RuntimeError:
        return None
    return binding


def _optimise(text: str, options: Options) -> tuple[Any, Any]:
    binding = _binding(options)
    triple, processor = target()
    module = binding.parse_assembly(text, binding.create_context())
    module.triple = triple
    machine = binding.Target.from_triple(triple).create_target_machine(
        cpu=processor, opt=_selection(options), reloc="pic", codemodel="default"
    )
    module.data_layout = str(machine.target_data)
    tuning = binding.create_pipeline_tuning_options(speed_level=options.opt_level)
    builder = binding.create_pass_builder(machine, tuning)
    if options.opt_level != 1:
        builder.getModulePassManager().run(module, builder)
        return module, machine
    passes = binding.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return module, machine

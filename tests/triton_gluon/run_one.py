"""Runs one case in this process: an example's own host function, with small parameters.

    fly-run --hip gfx1250 -- python run_one.py CHECKOUT NAME

The last line is `stage STAGE`: what the case has passed (none, imports, compiles, runs, right),
followed by `: reason` unless it is right. Each launch of a kernel with a reference (`references`)
is compared with it; then the example's own check judges too. The reason why a case is not right
names instructions that LLVM has left out of its kernels.
"""

import importlib
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from triton_gluon import assembly, cases, references, stand_in

EXAMPLES = "third_party/amd/python/examples/gluon"
STAGES = ("none", "imports", "compiles", "runs", "right")


class Wrong(Exception):
    """A kernel's result differs from the reference."""


def named_arguments(kernel, arguments, named):
    """A launch's arguments by parameter."""
    values = {one.name: one.default for one in kernel.params if one.has_default}
    values.update(zip(kernel.arg_names, arguments, strict=False))
    values.update((name, value) for name, value in named.items() if name in kernel.arg_names)
    return values


def watch(compared, broken):
    """Compares each launch of a kernel that has a reference, and adds to `broken` what LLVM has
    left out of any kernel."""
    import torch
    from triton.runtime.jit import JITFunction

    plain = JITFunction.run

    def missing(kernel):
        return [f"`{one}` in {kernel.name}" for one in assembly.left_out(kernel.asm["amdgcn"])]

    def run(self, *arguments, grid, warmup, **named):
        name = self.fn.__name__
        reference = references.KERNELS.get(name)
        if reference is None or warmup:
            kernel = plain(self, *arguments, grid=grid, warmup=warmup, **named)
            broken.extend(missing(kernel))
            return kernel
        after = named_arguments(self, arguments, named)
        before = {
            key: value.clone() if isinstance(value, torch.Tensor) else value
            for key, value in after.items()
        }
        kernel = plain(self, *arguments, grid=grid, warmup=warmup, **named)
        broken.extend(missing(kernel))
        compared.append(name)
        for error in reference(before, after):
            raise Wrong(f"{name}: {error}")
        return kernel

    JITFunction.run = run


def observe(module, name, compared):
    """Compares each call of a host function that has a reference."""
    plain = getattr(module, name)

    def run(*arguments, **named):
        result = plain(*arguments, **named)
        compared.append(name)
        for error in references.HOST[name](arguments, named, result):
            raise Wrong(f"{name}: {error}")
        return result

    setattr(module, name, run)


def said(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"


def run(checkout: Path, case) -> tuple[str, str]:
    """The stage that the case passed, and why no further."""
    stage, compared, broken = "none", [], []
    sys.path[:0] = [str(checkout / EXAMPLES), str(checkout / "python/triton_kernels")]
    try:
        module = importlib.import_module(case.file)
        stage = "imports"
        stand_in.complete(module)
        watch(compared, broken)
        for name in references.HOST:
            if hasattr(module, name):
                observe(module, name, compared)
        getattr(module, case.function)(**case.parameters)
    except stand_in.Skipped as reason:
        return stage, f"skips itself: {reason}"
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        told = said(error)
        if broken:
            copies = ", ".join(dict.fromkeys(broken))
            told = f"LLVM has left an instruction out: {copies} ({told.rstrip(': ')})"
        if compared and isinstance(error, AssertionError) and not str(error):
            # The tests of results say what differs; those of the code that Triton made do not.
            line = traceback.extract_tb(error.__traceback__)[-1].line
            return "right", f"its check of the generated code fails: {line}"
        stages = [stage, *stand_in.Launcher.stages]
        return max(stages, key=STAGES.index), told
    if not compared and not case.own:
        return max([stage, *stand_in.Launcher.stages], key=STAGES.index), "nothing was compared"
    return "right", ""


def main() -> int:
    checkout, name = Path(sys.argv[1]).resolve(), sys.argv[2]
    chosen = next(one for one in cases.CASES if one.name == name)
    stand_in.install()
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    stage, reason = run(checkout, chosen)
    print(f"time {time.perf_counter() - start:.2f}")
    print(f"stage {stage}{f': {reason}' if reason else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

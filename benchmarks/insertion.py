"""Overhead of fly-llc over bare llc, and of an inserted filter, on the vector addition.

    python benchmarks/insertion.py [--repeats 41] [--target gfx942] [--json]

All are whole processes, which run in turn; a figure is the fastest run, because other load only
adds time. Two differences are reported. `fly-llc beyond llc` is the time of the installed `fly-llc`
minus that of llc and `python -c pass` together. `a filter beyond its own` is the time that an
inserted filter (a Python script that passes MIR through) adds to fly-llc, minus the time of the
filter alone on the same MIR.
"""

from __future__ import annotations

import json as json_module
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import typer

ROOT = Path(__file__).resolve().parent.parent
FILTER = """#!{python}
import sys
sys.stdout.write(sys.stdin.read())
"""


def prepare(folder: Path, target: str) -> dict[str, list[str]]:
    """Returns the commands to time, by name."""
    from fly_common.programs import toolchain
    from fly_trace.session.load import find_entry, load_file

    path = str(ROOT / "examples" / "vector_add.py")
    compiled = find_entry(load_file(path), path, "vector_add").compile(target=target)
    source, mir = folder / "k.ll", folder / "k.mir"
    source.write_text(str(compiled.ir("opt.ll")))
    script = folder / "filter.py"
    script.write_text(FILTER.format(python=sys.executable))
    script.chmod(0o755)
    fly_llc = str(Path(sys.executable).with_name("fly-llc"))
    subprocess.run(
        [fly_llc, "--stop-before", "pre-sched2", str(source), "-o", str(mir)], check=True
    )
    llc = str(toolchain.find_program("llc"))
    out = str(folder / "k.o")
    inserted = [fly_llc, str(source), "-o", out, "--insert"]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "llc": [llc, f"-mcpu={target}", "-filetype=obj", str(source), "-o", out],
        "fly-llc": [fly_llc, str(source), "-o", out],
        "filter": [str(script)],
        "fly-llc --insert": [*inserted, f"pre-sched2={script}"],
        "fly-llc --insert nop-sled": [*inserted, "pre-emit=nop-sled"],
    }


def measure(target: str, repeats: int) -> dict[str, float]:
    """Returns milliseconds by command, and the two differences."""
    times: dict[str, list[float]] = {}
    # Keep bytecode, as an installed tool does.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = prepare(folder, target)
        mir = (folder / "k.mir").read_bytes()
        for _ in range(repeats + 1):  # the first run fills the page cache
            for command, words in commands.items():
                start = time.perf_counter()
                subprocess.run(
                    words, input=mir, stdout=subprocess.DEVNULL, env=environment, check=True
                )
                times.setdefault(command, []).append(time.perf_counter() - start)
    found = {command: min(values[1:]) * 1e3 for command, values in times.items()}
    found["fly-llc beyond llc"] = found["fly-llc"] - found["llc"] - found["python -c pass"]
    found["a filter beyond its own"] = (
        found["fly-llc --insert"] - found["fly-llc"] - found["filter"]
    )
    return found


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    repeats: int = typer.Option(41, min=1, help="Turns that each command has."),
    target: str = typer.Option("gfx942", help="The processor to compile for."),
    json: bool = typer.Option(False, help="Print the figures as JSON."),
) -> None:
    """Milliseconds of fly-llc and of llc, with and without an inserted filter."""
    found = measure(target, repeats)
    if json:
        print(json_module.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:28} {value:7.1f} ms")


if __name__ == "__main__":
    app()

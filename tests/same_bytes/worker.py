"""Runs pipelines of one side's commands in that side's environment, in forked children.

    python worker.py ENTRIES.json JOBS.json RESULTS FOLDER

Only the standard library and the commands' entry points are used. A child inherits imported
modules, so a command costs no start-up time; a crash of MLIR ends a child and is a valid result.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

SECONDS = 120  # time limit of a pipeline


class Refused(Exception):
    """A command of the pipeline exited with a non-zero status."""


def main() -> None:
    entries, jobs, results, folder = sys.argv[1:]
    commands = json.loads(Path(entries).read_text())
    groups: dict[str, list[dict]] = {}
    for job in json.loads(Path(jobs).read_text()):
        groups.setdefault(job["group"], []).append(job)
    warm = False
    with open(results, "a", encoding="utf-8") as file:
        for group in groups.values():
            while group:
                group = _in_child(group, commands, file, Path(folder), warm=warm)
                warm = True


def _in_child(group: list[dict], commands: dict, results, folder: Path, *, warm: bool) -> list:
    """Runs the jobs of a group; returns those left after one that ended the child."""
    if warm:
        _import_what_the_first_did(folder)
    start = _size(results)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _run_all(group, commands, results.name, folder)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    done = _size(results) - start
    if status == 0:
        return []
    left = group[done:]
    if left:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "worker failed"
        _write(results.name, {"job": left[0]["name"], "refused": how})
    return left[1:]


def _size(results) -> int:
    with open(results.name, "rb") as file:
        return sum(1 for _ in file)


def _write(path: str, result: dict) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")


def _import_what_the_first_did(folder: Path) -> None:
    known = folder / "modules.json"
    if not known.exists():
        return
    for name in json.loads(known.read_text()):
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except BaseException:  # a synthetic or deleted module, which is not needed here
                continue
    known.unlink()


def _run_all(group: list[dict], commands: dict, results: str, folder: Path) -> None:
    made: dict[str, object] = {}
    before = set(sys.modules)
    for job in group:
        signal.alarm(SECONDS)
        result: dict[str, object] = {"job": job["name"]}
        try:
            data = _pipeline(job, commands, made, folder)
        except Refused as refused:
            result["refused"] = str(refused)
        else:
            digest = sha256(data).hexdigest()
            place = folder / "made" / digest[:24]
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(data)
            result["made"] = digest[:24]
        signal.alarm(0)
        _write(results, result)
    new = [name for name in sys.modules if name not in before and "__main__" not in name]
    known = folder / "modules.json"
    if not known.exists() and len(new) > 50:
        known.write_text(json.dumps(new))


def _pipeline(job: dict, commands: dict, made: dict[str, object], folder: Path) -> bytes:
    data = Path(job["source"]).read_bytes() if job["source"] else b""
    key = job["source"] or ""
    for step in job["steps"]:
        key += "\n" + json.dumps(step)
        if key not in made:
            made[key] = _command(step, data, commands, folder)
        found = made[key]
        if isinstance(found, str):
            raise Refused(found)
        assert isinstance(found, bytes)
        data = found
    return data


def _command(step: list[str], data: bytes, commands: dict, folder: Path) -> bytes | str:
    """Returns what a command writes, or how it ended."""
    if step[0] not in commands:
        program = os.path.join(os.environ["FLY_LLVM_DIR"], "bin", step[0])
        done = subprocess.run([program, *step[1:]], input=data, capture_output=True)
        return f"{step[0]}: {done.returncode}" if done.returncode else done.stdout
    given, taken, said = (folder / f"stream.{kind}" for kind in ("in", "out", "err"))
    given.write_bytes(data)
    module, _, function = commands[step[0]].partition(":")
    code: object = 0
    with open(given, "rb") as source, open(taken, "wb") as sink, open(said, "wb") as errors:
        for number, file in enumerate((source, sink, errors)):
            os.dup2(file.fileno(), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    sys.argv = list(step)
    try:
        _stay_in_this_process()
        getattr(importlib.import_module(module), function)()
    except SystemExit as leaving:
        code = leaving.code
    except Exception as error:  # a traceback, if the command were a process
        code = type(error).__name__
    sys.stdout.flush()
    if code not in (0, None):
        return f"{step[0]}: {code}"
    return taken.read_bytes()


def _stay_in_this_process() -> None:
    """Disables isolation in tools: they would end their process, which is already a child here."""
    try:
        isolation = importlib.import_module("fly_common.command_line.isolation")
    except ImportError:  # the revision is older than isolation
        return
    isolation.isolate = lambda *_: None


if __name__ == "__main__":
    main()

"""A side: a checkout, and an environment in which only its own code is found.

The environment is a small venv whose path has that checkout's packages first and then the libraries
of the present venv, without the latter's link to the present checkout. So even a test that starts a
tool with an empty environment starts that side's tool.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

# Every HSACO goes through ld.lld. This wrapper keeps a copy of its output, under the name of the
# test that requested it.
_LINKER = """\
#!/bin/sh
real={real}
[ -n "$SAME_BYTES_RECORDS" ] || exec "$real" "$@"
output=-
previous=
for word; do
    [ "$previous" = -o ] && output=$word
    previous=$word
done
kept=$(mktemp "$SAME_BYTES_RECORDS/linked.XXXXXXXX")
bare=$kept.bare
trap 'rm -f "$kept" "$bare"' EXIT
"$real" "$@" >"$kept"
code=$?
if [ "$output" = - ]; then made=$kept; else made=$output; fi
# ELF for AMD GPUs by e_machine: libraries for the host, such as the emulator's, are not compared.
machine=$(od -An -tx1 -j18 -N2 "$made" 2>/dev/null | tr -d ' ')
if [ $code = 0 ] && [ "$machine" = e000 ]; then
    # Line tables name files, and those of tests lie in other folders each time.
    if grep -q '\\.debug_line' "$made"; then
        {objcopy} --strip-debug "$made" "$bare"
    else
        cp "$made" "$bare"
    fi
    digest=$(sha256sum "$bare" | cut -c 1-24)
    cp "$bare" "$SAME_BYTES_RECORDS/$digest"
    printf '%s\\t%s\\t%s\\n' "$digest" "$FLY_TARGET" "$PYTEST_CURRENT_TEST" \\
        >>"$SAME_BYTES_RECORDS/log"
fi
[ "$output" = - ] && cat "$kept"
exit $code
"""


@dataclass(frozen=True)
class Side:
    name: str  # "before" or "now"
    checkout: Path
    folder: Path  # for this side's files

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def commands(self) -> dict[str, str]:
        """Command → "module:function"."""
        project = tomllib.loads((self.checkout / "pyproject.toml").read_text())
        return project["project"]["scripts"]

    @property
    def packages(self) -> list[Path]:
        """The folders that an editable installation has on the path."""
        project = tomllib.loads((self.checkout / "pyproject.toml").read_text())
        folders = project["tool"]["hatch"]["build"]["dev-mode-dirs"]
        return [(self.checkout / folder).resolve() for folder in folders]

    def environment(self, llvm: Path) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FLY_")}
        kept.pop("PYTHONPATH", None)
        return {
            **kept,
            "FLY_LLVM_DIR": str(llvm),
            "FLY_LLVM_IN_PROCESS": "0",  # the wrapper of ld.lld sees every object
            "FLY_CACHE_DIR": str(self.folder / "cache"),
            "PATH": f"{self.python.parent}{os.pathsep}{kept['PATH']}",
        }

    def prepare(self) -> None:
        """Creates the environment."""
        self.folder.mkdir(parents=True)
        venv.create(self.folder / "venv", symlinks=True)
        own = Path(
            sysconfig.get_path("purelib", vars={"base": str(self.folder / "venv")}, scheme="venv")
        )
        libraries = sysconfig.get_path("purelib")
        (own / "side.pth").write_text("\n".join([*map(str, self.packages), libraries]) + "\n")
        there = Path(sys.executable).parent
        for program in there.iterdir():
            if not (self.python.parent / program.name).exists():
                (self.python.parent / program.name).symlink_to(program)
        for command, entry in self.commands.items():
            module, _, function = entry.partition(":")
            script = self.python.parent / command
            script.unlink(missing_ok=True)
            script.write_text(
                f"#!{self.python}\nimport sys\nfrom {module} import {function}\n"
                f"sys.exit({function}())\n"
            )
            script.chmod(0o755)


def checkout(root: Path, revision: str, folder: Path) -> None:
    """Checks out the files of a revision."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", revision], cwd=root, capture_output=True)
    if archive.returncode:
        raise SystemExit(
            f"same-bytes: error: {revision}: {archive.stderr.decode().strip()}\n"
            "  name a commit, a branch or a tag of this repository"
        )
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)


def recording_llvm(folder: Path) -> Path:
    """Creates an LLVM prefix like the one in use, with a linker that keeps its outputs."""
    opt = shutil.which("opt", path=str(Path(sys.executable).parent)) or shutil.which("opt")
    if chosen := os.environ.get("FLY_LLVM_DIR"):
        real = Path(chosen)
    elif opt:
        real = Path(opt).resolve().parents[1]
    else:
        raise SystemExit("same-bytes: error: no LLVM was found\n  run scripts/setup test")
    (folder / "bin").mkdir(parents=True)
    for place in real.iterdir():
        if place.name != "bin":
            (folder / place.name).symlink_to(place)
    for program in (real / "bin").iterdir():
        if program.name != "ld.lld":
            (folder / "bin" / program.name).symlink_to(program)
    linker = folder / "bin" / "ld.lld"
    linker.write_text(
        _LINKER.format(real=real / "bin" / "ld.lld", objcopy=real / "bin" / "llvm-objcopy")
    )
    linker.chmod(linker.stat().st_mode | stat.S_IXUSR)
    return folder

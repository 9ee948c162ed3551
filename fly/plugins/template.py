"""The template of plugins: examples/plugins/hello with another name.

In an installed package, it is beside this module.
"""

from __future__ import annotations

import re
from pathlib import Path

from fly_common.errors import MissingError, UsageError
from fly_common.quoting import quoted

NAME = "hello"
_SHOWN = re.compile(rf"{NAME}", re.IGNORECASE)
_PLACES = (
    Path(__file__).with_name(NAME),
    Path(__file__).parents[2] / "examples" / "plugins" / NAME,
)
# What a build or a run leaves in the template's folder.
_LEFT = re.compile(r"(__pycache__|build|dist|.*\.egg-info|.*\.pyc)$")


def files() -> dict[str, str]:
    """Maps the paths of the template's files to their texts."""
    folder = next((one for one in _PLACES if (one / "pyproject.toml").is_file()), None)
    if folder is None:
        raise MissingError(f"the template {_PLACES[-1]} was not found")
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not any(_LEFT.match(part) for part in inside.parts):
            found[inside.as_posix()] = path.read_text(encoding="utf-8")
    return found


def new(name: str, folder: Path) -> list[str]:
    """Writes the plugin `name` to `folder`, which must not exist, and returns its files.
    UsageError if `name` can't be an id and the name of a dialect."""
    from fly_plugin.manifest import Plugin, check

    if not re.fullmatch(r"[a-z][a-z0-9]*", name):
        raise UsageError(
            f"{quoted(name)} can't be the name of a plugin here",
            hint="a letter, then letters and digits, in lower case: the package, the dialect and"
            " the flags are named like it",
        )
    check(Plugin(id=name, dialects={name: "a:b"}))
    if folder.exists():
        raise UsageError(f"{folder} exists", hint="give another folder: new NAME FOLDER")
    made = []
    for path, text in files().items():
        target = folder / _renamed(path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_renamed(text, name), encoding="utf-8")
        made.append(target.relative_to(folder).as_posix())
    return made


def _renamed(text: str, name: str) -> str:
    return _SHOWN.sub(lambda found: name.upper() if found[0].isupper() else name, text)

"""python -m fly.plugins new NAME [FOLDER]: a plugin to start from, in FOLDER or ./NAME."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from fly_common import filter
from fly_common.errors import UsageError

USAGE = "python -m fly.plugins new NAME [FOLDER]"


def command(tool: str, words: list[str]) -> int:
    """Makes the plugin and says what to do next, on standard error."""
    if words in (["--help"], ["-h"]):
        print(f"Usage: {USAGE}\n\nMakes a plugin from a template: a package with one operation,")
        print("one pass, one option and one slot. FOLDER is ./NAME by default.")
        return 0
    if words[:1] != ["new"] or not 2 <= len(words) <= 3:
        raise UsageError("expected new NAME [FOLDER]", hint=USAGE)
    from fly.plugins.template import new

    folder = Path(words[2] if len(words) == 3 else words[1])
    for path in new(words[1], folder):
        print(folder / path)
    print(f"now: cd {folder} && pip install -e . && cat README.md", file=sys.stderr)
    return 0


def main() -> NoReturn:
    filter.run(command, "fly.plugins")


if __name__ == "__main__":
    main()

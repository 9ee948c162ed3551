"""Stores for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DATA = b"define void @f() {\n  ret void\n}\n"


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def crash(before: str, kills: int) -> subprocess.CompletedProcess[str]:
    code = f"import sys\n{before}\nfrom store_crash.__main__ import main\nsys.exit(main())"
    path = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    words = python(code, "--kills", str(kills))
    return subprocess.run(words, env=environment, capture_output=True, text=True)

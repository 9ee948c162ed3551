"""`flydsl.utils.env`: FlyDSL's environment variables, read when they are asked for.

docs/flydsl.md has what each does here.
"""

from __future__ import annotations

import os
from typing import Any


class Group:
    """Variables by their names in FlyDSL: name → (variable, default)."""

    def __init__(self, rows: dict[str, tuple[str, Any]]):
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._rows:
            raise AttributeError(f"there is no variable {name}")
        variable, default = self._rows[name]
        text = os.environ.get(variable)
        if text is None or text == "":
            return default
        if isinstance(default, bool):
            return text.lower() in ("1", "true", "yes", "on")
        return int(text) if isinstance(default, int) else text


compile = Group(
    {
        "arch": ("ARCH", ""),
        "compile_only": ("COMPILE_ONLY", False),
        "backend": ("FLYDSL_COMPILE_BACKEND", "rocm"),
        "llvm_dir": ("FLYDSL_COMPILE_LLVM_DIR", ""),
        "opt_level": ("FLYDSL_COMPILE_OPT_LEVEL", 2),
    }
)
runtime = Group(
    {
        "kind": ("FLYDSL_RUNTIME_KIND", "rocm"),
        "cache_dir": ("FLYDSL_RUNTIME_CACHE_DIR", ""),
        "enable_cache": ("FLYDSL_RUNTIME_ENABLE_CACHE", True),
        "run_only": ("FLYDSL_RUNTIME_RUN_ONLY", False),
    }
)
debug = Group(
    {
        "dump_ir": ("FLYDSL_DUMP_IR", False),
        "dump_dir": ("FLYDSL_DUMP_DIR", ""),
        "dump_asm": ("FLYDSL_DEBUG_DUMP_ASM", False),
        "ast_diff": ("FLYDSL_DEBUG_AST_DIFF", False),
        "log_level": ("FLYDSL_DEBUG_LOG_LEVEL", "WARNING"),
        "log_to_file": ("FLYDSL_DEBUG_LOG_TO_FILE", ""),
        "log_to_console": ("FLYDSL_DEBUG_LOG_TO_CONSOLE", False),
        "print_origin_ir": ("FLYDSL_DEBUG_PRINT_ORIGIN_IR", False),
        "print_after_all": ("FLYDSL_DEBUG_PRINT_AFTER_ALL", False),
        "enable_debug_info": ("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", True),
        "enable_verifier": ("FLYDSL_DEBUG_ENABLE_VERIFIER", True),
        "show_stacktrace": ("FLYDSL_DEBUG_SHOW_STACKTRACE", False),
    }
)

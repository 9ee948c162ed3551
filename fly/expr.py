"""The language that kernels are written in, usually imported as `fx`. See docs/language.md."""

from fly_trace.expr import *  # noqa: F403
from fly_trace.expr import __all__ as __all__

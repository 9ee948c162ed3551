"""`flydsl.expr.numeric`: the element types."""

from fly_trace.expr.types import *  # noqa: F403
from fly_trace.values.dtypes import Float as Float
from fly_trace.values.dtypes import Integer as Integer
from fly_trace.values.dtypes import Numeric as Numeric

from fly.flydsl.expr.typing import Index as Index
from fly.flydsl.expr.typing import as_numeric as as_numeric

"""The dialect `hello`: one operation.

hello.scale(%x) : (T) -> T      x times the factor, for T a float or a vector of floats
"""

import re

from fly_dialect.extension import Extension
from fly_dialect.op_info import OpInfo

_FLOATS = re.compile(r"(vector<\d+x)?(f16|bf16|f32|f64)>?")


def infer_scale(operands, attributes):
    """Returns the types of the results. A ValueError is reported at the operation."""
    (x,) = operands
    if not isinstance(x, str) or not _FLOATS.fullmatch(x):
        raise ValueError(f"takes floats, not {x}")
    return [x]


HELLO = Extension(ops=(OpInfo("scale", 1, 1, infer_scale, dialect="hello"),))

"""What a call of a compiled FlyDSL function costs; prints JSON: ns by way.

    ROCM_PATH=DIR ARCH=gfx942 LD_PRELOAD=STUB \
    python flydsl_launch.py FILE TENSORS INTEGERS REPEATS [allocating]

FILE has a function `host`; STUB is a HIP library that does nothing. See ../launch.py, which makes
both. With "allocating", the last tensor is made in each call, by torch.empty_like.
"""

import importlib.util
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import flydsl.compiler as flyc
import launch
import torch
from launch import calling

path, tensors, integers, repeats = sys.argv[1], *map(int, sys.argv[2:5])
allocating = sys.argv[5:] == ["allocating"]
spec = importlib.util.spec_from_file_location("peer", path)
assert spec
assert spec.loader
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
arguments = (*[torch.zeros(12, 20)] * tensors, *range(integers))
for _ in range(3):
    module.host(*arguments)
if allocating:
    given = ", ".join(f"a{n}" for n in range(tensors - 1))
    numbers = ", ".join(f"a{n}" for n in range(tensors - 1, tensors - 1 + integers))
    arguments = (*arguments[1:], torch.empty_like)
    call = f"function({given}, a{len(arguments) - 1}(a0), {numbers})"
    found = {"FlyDSL f(*args)": launch.per_call(calling(module.host, arguments, call), repeats)}
else:
    found = {"FlyDSL f(*args)": launch.per_call(calling(module.host, arguments), repeats)}
    handle = flyc.compile(module.host, *arguments)
    handle(*arguments)
    found["FlyDSL handle"] = launch.per_call(calling(handle, arguments), repeats)
print(json.dumps(found))

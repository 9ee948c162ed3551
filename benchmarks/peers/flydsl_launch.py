"""What a call of a compiled FlyDSL function costs; prints JSON: ns by way.

    ROCM_PATH=DIR ARCH=gfx942 LD_PRELOAD=STUB python flydsl_launch.py FILE TENSORS INTEGERS REPEATS

FILE has a function `host`; STUB is a HIP library that does nothing. See ../launch.py, which makes
both.
"""

import importlib.util
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import flydsl.compiler as flyc
import launch
import torch

path, tensors, integers, repeats = sys.argv[1], *map(int, sys.argv[2:5])
spec = importlib.util.spec_from_file_location("peer", path)
assert spec
assert spec.loader
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
arguments = (*[torch.zeros(12, 20)] * tensors, *range(integers))
for _ in range(3):
    module.host(*arguments)
found = {"FlyDSL f(*args)": launch.per_call(launch.calling(module.host, arguments), repeats)}
handle = flyc.compile(module.host, *arguments)
handle(*arguments)
found["FlyDSL handle"] = launch.per_call(launch.calling(handle, arguments), repeats)
print(json.dumps(found))

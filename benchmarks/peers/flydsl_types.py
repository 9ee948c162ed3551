"""Serves FlyDSL's type inference through a pipe (`python peers/flydsl_types.py`).

Each input line is a module as a JSON string. Each output line is `ok` if FlyDSL's verifier, which
infers result types again, accepts it, otherwise its message. A C++ assertion ends the process.
"""

import json
import sys

from flydsl._mlir import ir

context = ir.Context()
context.load_all_available_dialects()
for line in sys.stdin:
    try:
        ir.Module.parse(json.loads(line), context)
        said = "ok"
    except Exception as error:
        said = str(error)
    print(json.dumps(said), flush=True)

"""case.py make|check ENTRY [TARGET]: an example's arrays in the current folder, and whether the results are
NumPy's and the code object @jit's. The cases are those of tests/examples."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT / "tests/examples"))
from example_cases import CASES, check  # noqa: E402

action, entry, *chosen = sys.argv[1:]
case = next(case for case in CASES if case.entry == entry)
arguments = case.make()
if action == "make":
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and value.nbytes > 1 << 30:
            # A sparse file of the same content: its holes take no room on disk.
            stored = np.lib.format.open_memmap(f"{name}.npy", "w+", value.dtype, value.shape)
            stored[:, -64:] = value[:, -64:]
        elif isinstance(value, np.ndarray):
            np.save(f"{name}.npy", value)
else:
    from fly_trace.session.load import find_entry, load_file

    expected = case.expect(arguments)
    check(case, {name: np.load(f"{name}.out.npy") for name in expected}, expected)
    path = str(ROOT / "examples" / case.file)
    compiled = find_entry(load_file(path), path, entry).compile(
        target=chosen[0] if chosen else "gfx942"
    )
    assert Path("k.hsaco").read_bytes() == compiled.hsaco, "the pipe and @jit differ"

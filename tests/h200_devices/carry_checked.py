"""Compiles kernels with planted defects, and the examples, with the plugins that check kernels, and
kernels that print and assert, for a machine that has no compiler.

    python -m h200_devices.carry_checked OUT [TARGET]

OUT/NAME.image, OUT/NAME.npz (arguments), OUT/cases.json. An example has two images, with the
plugins and without.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import planted
from fly_common.errors import FlyError
from fly_trace.session.load import find_entry, load_file
from planted import bounds_kernels, sanitize_kernels
from plugins import CHECKS, SHIPPED, Site

from h200_devices import message_kernels
from h200_devices.carry import LARGEST, ROOT


def main(out: str, target: str = "sm_90a") -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        site = Site(Path(temporary) / "site")
        sys.path.insert(0, str(site.folder))
        for name in CHECKS:
            site.advertise(name, f"fly_{name}:PLUGIN", f"fly_{name}")
            sys.path.insert(0, str(SHIPPED / name))
        cases = [
            *_planted(folder, target),
            *_examples(folder, target),
            *_messages(folder, target),
        ]
    (folder / "cases.json").write_text(json.dumps({"target": target, "cases": cases}, indent=1))
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(cases)} cases, {size / 1e6:.1f} MB")


def _planted(folder: Path, target: str):
    """The kernels with defects: the plugin that finds each, and the lines."""
    for plugin, module in zip(CHECKS, (bounds_kernels, sanitize_kernels), strict=True):
        for case, make in module.CASES.items():
            name, arguments = f"{plugin}-{case.__name__}", make()
            compiled = case.compile(*arguments, target=target)
            compiled.save(folder / f"{name}.image")
            values = dict(zip(compiled.parameter_names, arguments, strict=True))
            np.savez(folder / f"{name}.npz", **values)
            lines = sorted(planted.defects(module, case))
            yield {"name": name, "plugin": plugin, "lines": lines}


def _examples(folder: Path, target: str):
    from example_cases import CASES

    for case in CASES:
        path, values = str(ROOT / "examples" / case.file), case.make()
        if case.traits or sum(np.asarray(one).nbytes for one in values.values()) > LARGEST:
            continue
        try:
            for name, plugins in ((case.name, ""), (f"{case.name}-checked", ",".join(CHECKS))):
                os.environ["FLY_PLUGINS"] = plugins
                compiled = find_entry(load_file(path), path, case.entry).compile(target=target)
                compiled.save(folder / f"{name}.image")
        except FlyError as error:
            print(f"left out: {case.name}: {error.message.splitlines()[0]}")
            continue
        finally:
            os.environ.pop("FLY_PLUGINS", None)
        np.savez(folder / f"{case.name}.npz", **values)
        yield {"name": case.name, "plugin": "", "lines": []}


def _messages(folder: Path, target: str):
    """The kernels that print and assert, and what they say."""
    for case in message_kernels.CASES:
        arguments = case.make()
        compiled = case.function.compile(*arguments, target=target)
        compiled.save(folder / f"{case.name}.image")
        values = dict(zip(compiled.parameter_names, arguments, strict=True))
        np.savez(folder / f"{case.name}.npz", **values)
        yield {"name": case.name, "printed": case.printed, "failed": case.failed}


if __name__ == "__main__":
    main(*sys.argv[1:])

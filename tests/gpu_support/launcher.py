"""An external launcher for tests: runs a request on the emulator.

python launcher.py IMAGE REQUEST
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import fly_image
from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE
from fly_run.emulator.machine import Emulator


def main(image_path: str, request_path: str) -> int:
    image = fly_image.read(Path(image_path).read_bytes())
    request = json.loads(Path(request_path).read_text())
    assert (request["version"], request["target"]) == (1, image.target)
    device = Emulator(image.target)
    module, places, folder = device.load(image), [], Path(request_path).parent
    for buffer in request["buffers"]:
        content = (folder / buffer["file"]).read_bytes()
        assert len(content) == buffer["bytes"]
        places.append(device.alloc(len(content), buffer["name"]))
        host = ctypes.create_string_buffer(content, len(content))
        device.copy(places[-1], ctypes.addressof(host), len(content), TO_DEVICE)
    for launch in request["launches"]:
        packed = bytearray.fromhex(launch["arguments"])
        for offset, number, inside in launch["pointers"]:
            packed[offset : offset + 8] = (places[number] + inside).to_bytes(8, "little")
        function = module.function(launch["kernel"])
        sizes = tuple(launch["grid"]), tuple(launch["block"])
        try:
            device.launch(function, *sizes, bytes(packed), launch["shared"])
        except Exception as error:
            print(f"a remark\n{error}".splitlines()[0], file=sys.stderr)
            print(str(error).splitlines()[0], file=sys.stderr)
            return 1
    for buffer, place in zip(request["buffers"], places, strict=True):
        if buffer["writable"]:
            host = ctypes.create_string_buffer(buffer["bytes"])
            device.copy(ctypes.addressof(host), place, buffer["bytes"], FROM_DEVICE)
            (folder / buffer["file"]).write_bytes(host.raw)
    print(f"ran {len(request['launches'])}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))

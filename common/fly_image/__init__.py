"""Images: the output of `fly-link` and the input of devices, for any vendor's hardware.

    image = fly_image.read(data)            detects the format; InputError says what is wrong
    image.target, image.program                the target and the host program
    image.kernel("saxpy").arguments         offset, size and kind of each

`image` defines the interface, `registry` the formats; `amd` reads AMD's code objects (HSACO).
"""

from fly_image.registry import read as read

"""Images: what `fly-link` makes and devices load, whoever's hardware they are for.

    image = fly_image.read(data)            by its content; InputError says what is wrong with it
    image.target, image.program                what it is for, and how to launch it
    image.kernel("saxpy").arguments         offset, size and kind of each

`image` has the interface, `registry` the formats; `amd` is AMD's code object (HSACO).
"""

from fly_image.registry import read as read

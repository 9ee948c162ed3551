"""The plugin `bounds`: checks each access of a kernel against the extent of its tensor."""

from fly_plugin.manifest import Plugin

PLUGIN = Plugin(
    id="bounds",
    version="0.1.0",
    options="fly_bounds.options:Options",
    passes={
        "bounds-coordinates": "fly_bounds.coordinates:Coordinates",
        "bounds-extents": "fly_bounds.extents:Extents",
        "bounds-check": "fly_bounds.check:Check",
    },
    slots={
        "opt.before-layout-lowering": "fly_bounds.pipeline:mark",
        "opt.before-gpu-lowering": "fly_bounds.pipeline:check",
    },
)

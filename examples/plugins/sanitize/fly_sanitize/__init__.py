"""The plugin `sanitize`: finds races on shared memory while kernels run."""

from fly_plugin.manifest import Plugin

PLUGIN = Plugin(
    id="sanitize",
    version="0.1.0",
    options="fly_sanitize.options:Options",
    passes={"sanitize-shared": "fly_sanitize.instrument:Instrument"},
    slots={"opt.before-gpu-lowering": "fly_sanitize.pipeline:shared"},
)

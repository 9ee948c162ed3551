"""The plugin `roofline`: FLOPs and bytes of kernels, and the bound that they set."""

from fly_plugin.manifest import Plugin

PLUGIN = Plugin(
    id="roofline",
    version="0.1.0",
    options="fly_roofline.options:Options",
    slots={"llc.pre-emit": "fly_roofline.analysis:content"},
    summaries={"roofline": "fly_roofline.summary:summary"},
)

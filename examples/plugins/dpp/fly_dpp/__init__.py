"""The plugin `dpp`: a machine pass that replaces lane shuffles through LDS by DPP moves."""

from fly_plugin.manifest import Plugin

PLUGIN = Plugin(
    id="dpp",
    version="0.1.0",
    options="fly_dpp.options:Options",
    filters={"dpp": "fly_dpp.shuffles:main"},
    slots={
        "llc.post-isel": "fly_dpp.shuffles:content",
        "llc.pre-emit": "fly_dpp.folded:content",  # only with --dpp-report
    },
)

"""A plugin for tests with a dialect that has a type of its own: `!pairs.pair<f32>`."""

from fly_plugin.manifest import Plugin

PLUGIN = Plugin(
    id="pairs",
    version="1",
    dialects={"pairs": "plugin_pairs.dialect:PAIRS"},
    namespaces={"pairs": "plugin_pairs.language"},
    passes={"pairs-lower": "plugin_pairs.lower:Lower"},
    slots={"opt.before-layout-lowering": "plugin_pairs.lower:PIPELINE"},
)

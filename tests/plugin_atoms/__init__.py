"""A plugin for tests with two instructions: `!twice.fma<f32>`, which is D = 2·A·B + C, and
`!twice.flip<32>`, a copy that inverts all bits."""

from fly_plugin.manifest import Plugin

PLUGIN = Plugin(
    id="twice",
    version="1",
    namespaces={"twice": "plugin_atoms.language"},
    atoms={
        "twice.fma": "plugin_atoms.instructions:Fma",
        "twice.flip": "plugin_atoms.instructions:Flip",
    },
    emitters=dict.fromkeys(("twice.fma", "twice.flip"), "plugin_atoms.emission"),
)

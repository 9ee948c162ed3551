"""The plugin `hello`: one operation, one pass, one option, one slot."""

from fly_plugin.manifest import Plugin

PLUGIN = Plugin(
    id="hello",
    version="0.1.0",
    options="fly_hello.options:Options",
    dialects={"hello": "fly_hello.dialect:HELLO"},
    namespaces={"hello": "fly_hello.language"},
    passes={"hello-lower": "fly_hello.lower:Lower"},
    slots={"opt.before-layout-lowering": "fly_hello.pipeline:lower"},
)

"""The options of the plugin: each field is a flag, `--hello-factor=4`, and a variable,
FLY_HELLO_FACTOR."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    factor: int = field(default=2, metadata={"help": "What hello.scale multiplies by."})

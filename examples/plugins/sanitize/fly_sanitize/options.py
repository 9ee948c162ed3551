"""The options of the plugin: each field is a flag, `--sanitize-blocks=256`, and a variable,
FLY_SANITIZE_BLOCKS."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    blocks: int = field(
        default=64, metadata={"help": "How many blocks have shadow memory of their own."}
    )
    dynamic: int = field(
        default=65536, metadata={"help": "The bytes of dynamic shared memory that are watched."}
    )
    skip: str = field(
        default="", metadata={"help": "The kernels that are left alone, separated by commas."}
    )

"""The fast path of a decorated function: calls of kinds that were seen before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import fly_plugin
from fly_backend import choice
from fly_common.command_line.options import KEYWORDS
from fly_common.environment import Snapshot, watcher
from fly_common.programs import cuda_toolkit, toolchain
from fly_common.record import field, record

from fly.call import specialisation
from fly.call.compiled import Compiled
from fly.call.host_options import VARIABLE, CompileOptions
from fly.chains.chain import Chain
from fly.dependencies.hashing import DependencyHash

if TYPE_CHECKING:
    from fly.call.arguments import Reader
    from fly.call.dispatch.native_calls import NativeCalls

# Seconds between two checks of LLVM's programs and library: checking the file system would dominate
# the cost of a call. Files that the user names are checked at each call.
LOOK_AFTER = 1.0

# The maximum number of code objects kept in memory for one function; the oldest is dropped.
MOST_KEPT = 256

# The environment variables that choose a chain, and that the search for programs reads.
VARIABLES = (
    VARIABLE,
    specialisation.VARIABLE,
    choice.BACKEND,
    choice.TARGET,
    fly_plugin.VARIABLE,
    fly_plugin.VERIFY,
    *(row.variable for row in KEYWORDS.values()),
    *toolchain.VARIABLES,
    cuda_toolkit.VARIABLE,
)
environment_now = watcher(*VARIABLES)


@record(frozen=False, eq=False)
class KnownCalls:
    """The state behind a function's fast path, valid as long as nothing that its code depends on
    changes. `dependencies` and `environment` are compared at each call. The chain's identity is
    compared every LOOK_AFTER seconds, or at each call if the chain is not settled. `made` maps keys
    of `reader` to code made by a chain of this `identity`, which is None until there is code."""

    dependencies: DependencyHash
    environment: Snapshot
    chain: Chain
    reader: Reader
    looked: float = 0.0
    identity: tuple[str, ...] | None = None
    made: dict[tuple[Any, ...], Compiled] = field(default_factory=dict)
    native: NativeCalls | None = None
    variables: tuple[str, ...] = ()  # further ones of the environment: those of plugins

    def __post_init__(self) -> None:
        self.environment_now = environment_now
        if self.variables:
            self.environment_now = watcher(*VARIABLES, *self.variables)

    def hold(self) -> bool:
        """Returns whether nothing has changed."""
        if self.environment_now() != self.environment or not self.dependencies.holds():
            return False
        now = time.monotonic()
        if now - self.looked < LOOK_AFTER and self.chain.settled:
            return True
        self.looked = now
        return self.identity is None or self.chain.identity() == self.identity

    def speed_up(
        self,
        key: tuple[Any, ...],
        compiled: Compiled,
        arguments: tuple[Any, ...],
        device: str,
        host: CompileOptions,
    ) -> Callable[..., Any] | None:
        """Native code for calls of this key, which is not the first; None where there is none."""
        if not self.chain.settled:
            return None  # something has to be looked at in each call
        if self.native is None:
            from fly.call.dispatch.native_calls import NativeCalls

            self.native = NativeCalls(self.dependencies, self.reader, (*VARIABLES, *self.variables))
        self.native.add(key, compiled, arguments, device, host)
        self.native.renew(max(0.0, LOOK_AFTER - (time.monotonic() - self.looked)))
        dispatcher = self.native.dispatcher
        return None if dispatcher is None else dispatcher.call

    def keep(self, key: tuple[Any, ...], compiled: Compiled, identity: tuple[str, ...]) -> None:
        """Stores the code compiled for a key."""
        if self.identity is None:
            self.identity, self.looked = identity, time.monotonic()
        if identity == self.identity:
            if len(self.made) >= MOST_KEPT:
                self.made.pop(next(iter(self.made)), None)
            self.made[key] = compiled

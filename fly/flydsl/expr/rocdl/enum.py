"""`flydsl.expr.rocdl.enum`: scopes, and address spaces besides MLIR's."""

from fly_trace.backends.amd.atoms import SyncScope as SyncScope


class TargetAddressSpace:
    """Memory behind a buffer descriptor."""

    BufferDesc = "#fly_rocdl.buffer_desc"


AddressSpace = TargetAddressSpace

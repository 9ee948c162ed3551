"""Rings of buffers in shared memory, and warps with roles: `fx.pipeline`, `fx.warp_group`."""

"""Products on Hopper: TMA and wgmma, by warp groups with roles."""

"""The kernels of attention on Hopper: TMA and wgmma, by warp groups with roles."""

"""Guards: whether the arguments of a call are those that a launcher was made for.

tensors     tensor parameters: kind, device, dtype, extents
layout      their strides
scalars     numbers and streams
function    the functions that guard alike parameters, one for all of a kind
"""

"""NVIDIA's images: cubins, and PTX that the driver compiles.

ptx         sections in PTX text
entries     kernels as PTX declares them: parameters and limits
nv_info     attributes of a cubin's kernels, from its `.nv.info` sections
resources   registers, spills and memory, from what ptxas says
sections    sections appended to a cubin
kernel      `Kernel`, the interface of a kernel
cubin       the image of a cubin
ptx_image   the image of PTX
"""

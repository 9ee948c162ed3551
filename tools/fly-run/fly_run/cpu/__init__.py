"""The device `cpu`: code for NVIDIA's GPUs, compiled for the host (`fly_cpu`).

compile      object → shared library; its cache
printing     what kernels print
loading      modules and functions of the device
execution    a launch: slices, host threads, faults
sanitizer    AddressSanitizer: its run-time library
faults       what a fault says
device       the device
"""

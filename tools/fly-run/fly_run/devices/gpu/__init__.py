"""GPUs through their drivers' C interfaces, by ctypes: CUDA's driver API and HIP.

driver      a driver's library: its functions by role, its statuses as exceptions
cuda, hip   the two tables, and what differs beyond names
context     a device's context, current while the device works
modules     loaded images and their kernels
order       streams and events
entry       what native code launches by
device      the device itself
"""

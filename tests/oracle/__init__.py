"""A second, independent reading of the gfx9 ISA: what the emulator is judged by. See
interpreter/machine.py.

    program, arithmetic     code objects and instruction text; exact floats
    state                   registers, memory and modes of waves
    vector, memory, scalar, matrix    what instructions do
    interpreter             decodes and executes
    launching               kernels built, and launched on the oracle or on a device
    probes, comparison      one instruction after the other, on the oracle and on the emulator

Each imports from those before it alone.
"""

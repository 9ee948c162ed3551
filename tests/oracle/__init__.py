"""A second, independent implementation of the ISA, to test the emulator; see
interpreter/machine.py.

    program, arithmetic     code objects and instruction text; exact floats
    state                   registers, memory and modes of waves
    vector, memory, scalar, matrix    the semantics of instructions
    interpreter             decodes and executes
    launching               builds kernels, and launches them on the oracle or on a device
    probes, comparison      single instructions on the oracle and on the emulator

Each imports only those before it.
"""

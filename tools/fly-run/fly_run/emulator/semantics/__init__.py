"""Instruction semantics: tables of mnemonics, and the emitters that generate their handlers.

operation   one row of a table
salu, valu_integer, valu_address, valu_float, division, transcendental, convert, vopc, packed,
lanes, memory, flow, adapters
            the tables, by class
access      the data that a memory instruction moves
emit, emit_memory, transfer
            LLVM IR of a row's handlers
resolve, driver
            the functions that handlers and the grid share
table       all rows together
"""

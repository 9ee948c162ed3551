"""Instruction semantics: tables of mnemonics, and the emitters that generate their handlers.

base        rows of a table, descriptions of accesses, emitters of vector and scalar handlers
scalar, vector, memory, matrix, rdna
            the tables, by class, with their own emitters
grid        the functions that run the grid
table       all rows together
"""

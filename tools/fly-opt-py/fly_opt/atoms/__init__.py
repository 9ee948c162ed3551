"""What atoms become: the instructions of each family in ops of the rocdl and LLVM dialects.

`fly_dialect.atoms` says what an instruction is; a module here, one a family, says how it is
written. A family joins by `emitters.copies` or `emitters.multiplies` with its class, so that a new
instruction needs no change elsewhere. `calls` brings the four forms of a call (in memory and in SSA
values, each with or without a predicate) to one before a family sees it.
"""

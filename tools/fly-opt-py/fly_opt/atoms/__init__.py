"""Lowering of atoms: the instructions of each family as ops of the rocdl and LLVM dialects.

`fly_dialect.atoms` describes an instruction; the modules here, one per family, emit it. A family
registers its class with `emitters.copies` or `emitters.multiplies`, so a new instruction needs no
change elsewhere. `calls` reduces the four forms of a call (operands in memory or in SSA values,
each with or without a predicate) to one before the family's emitter runs.
"""

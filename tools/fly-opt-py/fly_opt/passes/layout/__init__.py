"""The parts of `fly-layout-lowering`, each with a table of the ops it lowers:

    lowered_values   what values lower to: the algebra's data
    lowering         the driver, and what every op's lowering uses
    memory           integers in and out, views, single elements, registers
    vectors          whole views as vectors
    tiles            each thread's part of a view
    expansion        copy and gemm as calls of their atoms

Ops that only compute have no lowering of their own: `fly_dialect.inference.computation` is their
table.
"""

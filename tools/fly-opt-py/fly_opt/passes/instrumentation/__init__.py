"""For passes that instrument kernels, which plugins have.

accesses     what an operation reads and writes
provenance   what memory a pointer is into
building     integer arithmetic, and code around an operation
reports      records that kernels write for the host
printing     asserts and printed lines of kernels, as reports
"""

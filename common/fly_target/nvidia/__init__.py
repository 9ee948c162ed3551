"""NVIDIA's chips.

triple   LLVM's triple, the data layout and the PTX version
facts    `NvidiaFacts`, the properties that only NVIDIA's chips have
chips    the rows
"""

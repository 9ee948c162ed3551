"""AMD's chips.

processors    the processor numbers of ELF files
waits         the fields of S_WAITCNT
triple        LLVM's triple, the data layout and the code object version
facts         `AmdFacts`, the properties that only AMD's chips have
generations   what the chips of one architecture share
chips         the rows
"""

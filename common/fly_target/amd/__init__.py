"""AMD's chips.

processors    the numbers by which an ELF file names its processor
waits         the fields of S_WAITCNT
triple        LLVM's triple, data layout and the version of code objects
facts         `AmdFacts`, the record of what only AMD's chips have
generations   what chips of one architecture share
chips         the rows
"""

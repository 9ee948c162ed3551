"""The chips that this compiler makes code for: a row each, with all that any stage asks of one.

target      `Target`, the row, and `LdsBanks`
registry    finding a row by its name: those that come with the compiler, those of entry points
amd         AMD's facts, generations and chips

A row is plain data. Nothing here imports more of this project than `fly_common`'s errors and
records.
"""

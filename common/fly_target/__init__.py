"""The chips that the compiler supports. Each is one row with everything that a stage queries.

target      `Target`, the row, and `LdsBanks`
registry    looks rows up by name, here and among entry points
amd         AMD's facts, generations and chips
nvidia      NVIDIA's facts and chips

A row is plain data. This package imports only the errors and records of `fly_common`.
"""

"""What each backend adds to the tools: one record of lazily resolved references per backend.

backend     `Backend`, the record
registry    looks backends up by name, in this package, in this process, in installed packages
choice      the backend and the target of a compilation
amd         the backend `rocm`
nvidia      the backend `cuda`
"""

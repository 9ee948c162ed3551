"""What a vendor's hardware adds to each tool: one record of names a backend, resolved on use.

backend     `Backend`, the record
registry    finding a backend by its name; those of installed packages too
amd         the backend `rocm`
"""

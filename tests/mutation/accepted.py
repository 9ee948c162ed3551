"""Mutants that no test can notice, though their code is not the original's.

(pattern of the handler's name, pattern found in the change, reason)
"""

ACCEPTED: tuple[tuple[str, str, str], ...] = ()

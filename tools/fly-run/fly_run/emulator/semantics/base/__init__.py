"""Common parts of the operation tables and their emitters."""

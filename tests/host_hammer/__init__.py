"""Launchers called until a wrong count of references, or memory that is not freed, shows."""

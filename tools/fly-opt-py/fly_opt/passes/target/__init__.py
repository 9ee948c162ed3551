"""Which chip a module is for, and what follows from its waves."""

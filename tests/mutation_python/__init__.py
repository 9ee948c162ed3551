"""Mutation of Python modules: their functions are mutated, and the tests must detect it.

PYTHONPATH=tests python -m mutation_python                          every group of modules
PYTHONPATH=tests python -m mutation_python --group plan --sample 50

`groups.py` lists the modules to mutate, and the tests that must detect the mutants.
"""

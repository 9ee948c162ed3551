"""Mutation of Python modules: their functions are damaged, and the tests must notice.

PYTHONPATH=tests python -m mutation_python                          every group of modules
PYTHONPATH=tests python -m mutation_python --group plan --sample 50

`groups.py` says which modules are damaged, and whose tests judge them.
"""

"""Writes a 3 by 5 array of f64 in column-major order to the file that is named."""

import sys

import numpy as np

np.save(sys.argv[1], np.zeros((3, 5), order="F"))

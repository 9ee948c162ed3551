"""How blocks take the rows of matrices."""

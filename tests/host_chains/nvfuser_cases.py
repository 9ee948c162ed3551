"""The tensors of nvFuser's host IR tests and of its pull request 4581, written anew. Each expected
stride is worked out in the comment beside it."""

# (shape, allocation, logical shape, strides, elements)
CASES = {
    # Set: a copy of a contiguous tensor. 3·4 and 4.
    "set": ((2, 3, 4), "", (2, 3, 4), (12, 4, 1), 24),
    # Allocation of a size that is known when the program runs.
    "dynamic size": ((5, 7), "", (5, 7), (7, 1), 35),
    # Reorder: the memory has W outermost, then N, then H: H at 1, N at 4, W at 4·3.
    "reorder": ((3, 4, 5), "reorder(2, 0, 1)", (3, 4, 5), (4, 1, 12), 60),
    # Permute: NCHW in channels-last memory N, H, W, C. C 1, W 3, H 3·5, N 3·5·4.
    "permute": ((2, 3, 4, 5), "reorder(0, 2, 3, 1)", (2, 3, 4, 5), (60, 1, 15, 3), 120),
    # Allocation domain of a matrix: column major.
    "allocation domain": ((6, 8), "reorder(1, 0)", (6, 8), (1, 6), 48),
    # Broadcast of [64, 32] to [64, 1, 32]: the new axis has one position and stride 0.
    "broadcast": ((64, 32), "broadcast(1)", (64, 1, 32), (32, 0, 1), 2048),
    # ... expanded to 5 rows that are one in memory.
    "expand": ((64, 32), "broadcast(1) expand(1, 5)", (64, 5, 32), (32, 0, 1), 2048),
    # Matmul and linear: M×N of M×K and K×N, row major.
    "matmul": ((32, 16), "", (32, 16), (16, 1), 512),
    # Reshape [4, 6] to [24] of the same memory, and [24] to [4, 6].
    "reshape by a merge": ((4, 6), "merge(0)", (4, 6), (6, 1), 24),
    "reshape by a split": ((24,), "split(0, 6)", (24,), (1,), 24),
    # 4581, merge: N, H·W, C is the memory of N, H, W, C. C 1, W 6, H 6·5, N 6·5·4.
    "merge": ((3, 4, 5, 6), "merge(1)", (3, 4, 5, 6), (120, 30, 6, 1), 360),
    # ... of axes that a reorder brought together: N, C·H, W. W 1, H 5, C 5·4, N 5·4·6.
    "reorder, merge": (
        (3, 4, 5, 6), "reorder(0, 3, 1, 2) merge(1)", (3, 4, 5, 6), (120, 5, 1, 20), 360,
    ),
    # 4581, split: H as H/2, 2 in place: nothing moves.
    "inner split": ((3, 4, 5, 6), "split(1, 2)", (3, 4, 5, 6), (120, 30, 6, 1), 360),
    "outer split": ((3, 4, 5, 6), "split(1, 2, inner=False)", (3, 4, 5, 6), (120, 30, 6, 1), 360),
    # W outside of C/3 and 3, which stay neighbours: N, H, C/3, 3, W. W 1, C 5, H 5·6, N 5·6·4.
    "split, reorder": (
        (3, 4, 5, 6), "split(3, 3) reorder(0, 1, 3, 4, 2)", (3, 4, 5, 6), (120, 30, 1, 5), 360,
    ),
    # Merged, then split: N, H·W as 10 parts of 2, C. The parts are adjacent: 12 = 6·2.
    "merge, split": ((3, 4, 5, 6), "merge(1) split(1, 2)", (3, 4, 5, 6), (120, 30, 6, 1), 360),
    # Split, then merged with a neighbour: N·H/2, 2, W·C.
    "split, merge": (
        (3, 4, 5, 6), "split(1, 2) merge(0) merge(2)", (3, 4, 5, 6), (120, 30, 6, 1), 360,
    ),
    # 10 columns as one part of 16: rows are 16 apart, and 3 of them are 48 elements. nvFuser's
    # compiled host programs allocate 2·16 + 10 = 42.
    "padded split": ((3, 10), "split(1, 16, padded=True)", (3, 10), (16, 1), 48),
    # 10 columns as 3 parts of 4: 12 a row.
    "padded split, many parts": ((3, 10), "split(1, 4, padded=True)", (3, 10), (12, 1), 36),
    # 3 rows in parts of 2, padded to 4.
    "padded rows": ((3, 10), "split(0, 2, padded=True)", (3, 10), (10, 1), 40),
    # The padded columns outermost: 16 columns of 3 rows.
    "padded split, reorder": (
        (3, 10), "split(1, 16, padded=True) reorder(1, 2, 0)", (3, 10), (1, 3), 48,
    ),
}  # fmt: skip

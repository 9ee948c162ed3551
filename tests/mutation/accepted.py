"""Mutants that no test can notice, though their code is not the original's, or that none ought to,
as no source says what is right there.

(pattern of the handler's name, pattern found in the change, reason)
"""

ACCEPTED: tuple[tuple[str, str, str], ...] = (
    (
        r"v_permlane(16|32)_swap_b32",
        r"load i64, .* or i64 .*, -1$",
        "what these do with lanes off is open: the manual's text has no EXEC in it",
    ),
    (
        r"fly_transpose_b\d",
        r"load i64, .* or i64 .*, -1$",
        "ds_read_tr with lanes off is open: the manual wants EXEC to be all ones",
    ),
    (
        r"s_barrier_signal",
        r"add i32 %v2, 2$",
        "waves' numbers of signals are compared with each other only: twice as many are the same",
    ),
)

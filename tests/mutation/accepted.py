"""Mutants that no test can detect, although their code differs from the original's, or that no test
should detect, because no source specifies the result.

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
        r"fly_unpack_.*parts|v_dot2.*",
        r"2143289344\).* → .*214328934[35]\)$",
        "a factor's NaN has no part in the sum but that it is one: the sum's is the same for all",
    ),
    (
        r"fly_matrix_g?tr\d+\..*",
        r"llvm\.smin.*splat \(i32 60\)\) → .*splat \(i32 (59|61)\)\)$",
        "what is so far below the greatest exponent is nothing in any case",
    ),
    (
        r"(fly_matrix_|v_dot2.*@)(pairs|complements).*",
        r"splat \(i32 -?(60|600)\)\)? → .*splat \(i32 -?(59|60|61|599|600|601)\)\)?$",
        "a bound between all exponents and those of zero and of what is no number, far from both",
    ),
    (
        r"s_barrier_signal",
        r"add i32 %v2, 2$",
        "waves' numbers of signals are compared with each other only: twice as many are the same",
    ),
    (
        r"fly_named_signal(_first)?",
        r"%op, i64 12 → .*%op, i64 8$",
        "number and members are both in M0, or the number is a constant, with no bits of members",
    ),
    (
        r"fly_(cluster|named)_wait",
        r"and i1 (%v\d+), %v\d+ → .*and i1 \1, \1$",
        "a wave that stops although the barrier is complete is released in the same round",
    ),
    (
        r"buffer_(load|store)_.*",
        r"icmp uge i64 %v\d+, (1 → .* 2|2 → .* 3|4 → .* 5|8 → .* 9|12 → .* 13|16 → .* 17)$",
        "a range that ends with a lane's datum takes the general path, with the same result",
    ),
    (
        r"buffer_(load|store)_.*",
        r"and i64 (%v\d+), %v2 → .*and i64 \1, \1$",
        "with lanes in range that are off the general path is taken, with the same result",
    ),
    (
        r"fly_arrive_in_lds\.v",
        r", 4294967295 → ",
        "the upper half of the count, which is one here, is zero",
    ),
    (
        r"v_permlane_\w+_b32",
        r"llvm\.umin\.i64\(i64 %v\d+, i64 32\) → .*i64 3[13]\)",
        "no source tells of groups of other sizes than 1, 2, 4, … 32 lanes",
    ),
    (
        r"ds_atomic_barrier_arrive_rtn_b64\.v",
        r"%v71 = and i64 %v70, 7 → .*, 15$",
        "the bit above the phase is the count's lowest, with which it is combined again",
    ),
)

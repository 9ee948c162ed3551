"""Mutants that no test can notice, or that none ought to.

(pattern of the module, pattern of the function, pattern found in the change, reason)
"""

ACCEPTED: tuple[tuple[str, str, str, str], ...] = (
    (
        r".*",
        r".*",
        r"^strict=True → False$",
        "an assertion: the lengths are equal by the checks before it",
    ),
    (
        r"fly_run\.\w+",
        r"Value",
        r"'np\.ndarray",
        "a name for type checkers",
    ),
    (
        r".*\.plan_eval",
        r"_truncdiv",
        r"^([ab] < 0 → [ab] <= 0|0 → 1)$",
        "a quotient of zero has no sign, and a divisor of zero is refused before",
    ),
    (
        r".*",
        r"show",
        r"^3 → 4$",
        "a slice of three numbers ends where they end",
    ),
    (
        r"fly\..*",
        r"Walk\.code",
        r"^self\.(code|constant)\(constant\) → pass$",
        "the source of a function is in its digest as well, and says all that its constants do",
    ),
)

"""Mutants that no test can detect, or that none should detect.

(pattern of the module, pattern of the function, pattern found in the change, reason)
"""

# Words that a digest begins the parts of a value with.
_TAGS = (
    "again|known|function|kwdefaults|attributes|annotation|own|missing|code|list|tuple|slice"
    "|mapping|builtin|builtin method|method|partial|property|member|value|alias|union|numpy|class"
    "|bases|field|registered|defaults|descriptor|cached|decorated|state|slot|dtype|ufunc|array"
)

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
        r"fly_host\.(interpreter|python_code|python_text|inference)",
        r"(MOST_ITERATIONS|MOST_KEPT|MOST_FACTORS)",
        r"^\d+ → \d+$",
        "a bound that nobody comes near",
    ),
    (
        r"fly_host\.python_text",
        r"Writer\.in_range",
        r"^100 → 101$",
        "how many values a line of generated code compares",
    ),
    (
        r"fly_host\.inference",
        r"_Back\._factors",
        r"^(seen > MOST_FACTORS → seen >= MOST_FACTORS|1 → 2|0 → 1|.*powers\[index\] -= power)$",
        "of both products that are compared, alike",
    ),
    (
        r"fly_host\.inference",
        r"infer",
        r"^'' → '\?'$",
        "the name of a tensor that there is not",
    ),
    (
        r"fly_run\.launch\.arrays\.tensors",
        r"_overlaps_itself",
        r"^(step < reach → step <= reach|extent - 1 → extent \+ 1|n > 1 → n >= 1"
        r"|.* - array\.itemsize|array\.size > span // array\.itemsize → array\.size >= .*)$",
        "a shorter way to what the comparison of all offsets says as well",
    ),
    (
        r"fly_host\.graph",
        r"Graph\._multiplied",
        r"^(factor < 1 → factor <= 1|1 → 2)$",
        "a factor of 1 is gone before",
    ),
    (
        r"fly_host\.domain",
        r"(_NUMBER|_DYNAMIC)",
        r"\?'$",
        "a lazy repetition, where the whole text must match",
    ),
    (
        r"(fly_host\.integers|fly\.torch\.shapes)",
        r"_?truncdiv",
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
        r"fly\.dependencies\.functions",
        r"follow_code",
        r"^(follow_code|_follow_constant)\(walk, constant\) → pass$",
        "the source of a function is in its digest as well, and says all that its constants do",
    ),
    (
        r"fly\.dependencies\.bytecode",
        r"names_of",
        r"^argument >> _ATTRIBUTE_SHIFT → argument << _ATTRIBUTE_SHIFT$",
        "CPython 3.11, by which this is run, shifts by nothing",
    ),
    (
        r"fly\.call\.dispatcher",
        r"(TAGGED|Dispatcher\._fill)",
        r"(sys\.version_info|^TAGGED)",
        "tells CPython 3.13 from those before, by one of which this is run",
    ),
    (
        r"fly\.call\.function",
        r"_TARGET_NAMED",
        r"\?'$",
        "the tracer writes the closing quote",
    ),
    (
        r"fly\.call\.function",
        r"JitFunction\.run",
        r"→ key is not None and calls\.dependencies is self\._dependencies$",
        "where there are no calls there is no key",
    ),
    (
        r"fly\.chains\.stage",
        r"_Command\._run",
        r"^(code < 0 → code <= 0|0 → 1)$",
        "the exit status is not 0 there",
    ),
    (
        r"fly_store\.store",
        r"Store\._write",
        r"^12 → 13$",
        "a name that nobody else has, of one byte more",
    ),
    (
        r"fly\.call\.arguments",
        r"digest_of",
        r"^('' → '\?'|', ' → ', \?')$",
        "it is compared with what is made in the same way, and with nothing else",
    ),
    (
        r"fly\.chains\.stage",
        r"_Command\.run",
        r"^(prefix='fly-stage-' → 'fly-stage-\?'|'input' → 'input\?')$",
        "the name of a temporary file, which the command is told",
    ),
    (
        r"fly\.dependencies\.bytecode",
        r"_operations",
        r"^0 → 1$",
        "the first instruction of code names nothing: its argument says nothing",
    ),
    (
        r".*",
        r".*",
        r"^encoding='utf-8' → 'utf-8\?'$",
        "Python's name of a codec is told by its letters and digits alone",
    ),
    (
        r"fly\.dependencies\.(functions|kinds|traversal)",
        r"(Traversal\.\w+|_?follow_(?!instance)\w+)",
        rf"^'(?P<tag>{_TAGS})' → '(?P=tag)\?'$",
        "a tag of the digest: any other word does as well",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_instance",
        r"^'(number|arguments|more|instance|reduced)' → '\1\?'$",
        "a tag of the digest: any other word does as well",
    ),
    (
        r"fly\.dependencies\.functions",
        r"follow_code",
        r"^'' → '\?'$",
        "it stands between lists of names, and is in none",
    ),
    (
        r"fly\.dependencies\.functions",
        r"_follow_path",
        r"^(walk\.emit\('missing'\) → pass|callable\(value\) and .*)$",
        "nothing follows the name of what is missing; only functions are found by `name_of`",
    ),
    (
        r"fly\.dependencies\.functions",
        r"follow_function",
        r"^path not in names\.paths and \(not prose\) → not prose$",
        "what is followed a second time says the same",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_sequence",
        r"^isinstance\(value, list\) → not isinstance\(value, list\)$",
        "the tags of lists and tuples exchanged (the other condition is tested)",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_type",
        r"^('__code__' → .*|.*in stable_names\.DATACLASS_METHODS.*|made and code and .*)$",
        "followed as a function, a generated method says all that its code does",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_dataclass_fields",
        r"^(return True → .*|True → False|return False → .*|False → True|walk\.emit\(.*)$",
        "as above; and generated methods have what the class and its fields were made with",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_(instance|member|state)",
        r"^walk\.emit\(('instance'|'member'|'reduced'|'slot'|'missing').*\) → pass$",
        "the class, the value, the function that makes it again or the order say it too",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_state",
        r"^continue → pass$",
        "members of C types are followed once more",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_numpy",
        r"^return False → return None$",
        "only its truth is asked",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_instance",
        r"^stable_names\.is_numpy\(module\) and .*",
        "what is of another module is none of NumPy's types",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_builtin",
        r"^(owner is None or .*|module == 'builtins' and .*)$",
        "a function of C has its module as owner; no pure module's has the name of an impure one",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_follow_module",
        r"^'' → '\?'$",
        "it stands for the module itself, whatever it is",
    ),
    (
        r"fly\.dependencies\.kinds",
        r"_reduced",
        r"^(2 → 3|len\(made\) > 3 → len\(made\) >= 3|part or \(\) → part)$",
        "pickle's later protocols give the same; of three parts none are left",
    ),
    (
        r"fly\.dependencies\.stable_names",
        r"_HEAP_TYPE",
        r"^9 → 10$",
        "Py_TPFLAGS_BASETYPE, which all classes of Python have too",
    ),
    (
        r"fly\.dependencies\.traversal",
        r"Traversal\.value",
        r"^kind is str and value in library\.registered → .*",
        "the names of functions are strings",
    ),
    (
        r"fly\.dependencies\.functions",
        r"follow_function",
        r"^' ' → ' \?'$",
        "it stands between annotations, and is in no name",
    ),
)

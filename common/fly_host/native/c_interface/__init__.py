"""Native code of host programs with a C interface, for processes without Python.

The guards, the arithmetic, the steps and the packed arguments are those of the launchers of Python
(`fly_host.native`). What differs is here: arguments are DLTensors and C's numbers, tensors that
the program makes are counted blocks of a runtime library (`fly_link.shared`), and whatever is wrong
is told by the code itself, in the words of `fly_host.refusals`.

    frame          what is known at one place; texts
    value_errors   which expression has no value, and why
    arguments      parameters of the C function
    steps          the steps of the program, launches, tensors that it makes
    results        what it returns
    function       one target's function, in LLVM IR
"""

"""Native code for host programs: one Python builtin for each specialisation, made with LLVM and
without a C compiler.

    specialisation  what code is made for: program, kinds of arguments, interfaces of kernels, entry
    calling         compile: a builtin, prepared calls, the text
    builtin         a native function as a Python callable
    prepared        calls that only launch
    launcher        the LLVM IR of the builtin, from
                    guards, steps, outputs, launches, fitting, objects (results, calls)
    guards/         what arguments must be like: tensors, layout, scalars, function
    arithmetic      integers that may have no value
    code, frame     the text of a function; what is known at one place in it
    engine          LLVM IR → a shared library
    library         kept by content, loaded once
    failures        errors behind the first step, in the interpreter's words
    c_interface/    the same for C: libraries without Python
    marks           values in the texts of what is wrong there

A builtin returns NotImplemented for a call that is not its own: other types, layouts or numbers,
and every call that fails before its first step. Nothing has happened then; the caller runs the
program another way, which has the words for what is wrong.

Every program has native code, if its kernels take the arguments that it gives. Unavailable is
raised for arrays that are neither NumPy's nor torch's, torch tensors on several devices, another
Python than CPython 3.11 to 3.14 with a GIL, another system than Linux on x86-64 and AArch64, and
where there is no LLVM.
"""

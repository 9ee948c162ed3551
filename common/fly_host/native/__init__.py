"""Native code for host programs: one Python builtin for each specialisation, made with LLVM and
without a C compiler."""

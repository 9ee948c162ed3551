"""A call of `@fly.jit`: arguments, arrays, the compiled function."""

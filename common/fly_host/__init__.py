"""Host programs: their model and text, domains, the interpreter, generated Python, native code."""

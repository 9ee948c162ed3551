"""No value of the fly dialect crosses a function boundary."""

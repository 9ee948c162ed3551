"""Arrays that are arguments: element types, checks, memory on the host and on devices."""

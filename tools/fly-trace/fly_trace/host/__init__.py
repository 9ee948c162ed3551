"""What host functions do beside launching kernels: allocate, check, call libraries, return."""

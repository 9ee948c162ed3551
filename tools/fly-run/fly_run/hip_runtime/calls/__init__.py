"""The functions, by subject. Their names and parameters are HIP's (`prototypes`)."""

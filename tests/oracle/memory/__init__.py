"""Instructions that access memory or LDS."""

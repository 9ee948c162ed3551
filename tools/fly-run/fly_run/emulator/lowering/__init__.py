"""Instructions → steps → micro-ops."""

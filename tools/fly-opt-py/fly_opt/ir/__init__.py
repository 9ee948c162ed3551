"""What passes build with: operations, pointers, vectors, integers."""

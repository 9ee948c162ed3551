"""What only a GPU has: ids, barriers, lane shuffles, atomics; what a program promises."""

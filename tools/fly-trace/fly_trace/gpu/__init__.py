"""GPU features: ids, barriers, lane shuffles, atomics, assumptions."""

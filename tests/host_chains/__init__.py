"""Random chains of steps on tensors' axes: what inference says is held against enumeration."""

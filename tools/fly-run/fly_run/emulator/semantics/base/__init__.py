"""What tables of operations and their emitters have in common."""

"""What backends add to the language."""

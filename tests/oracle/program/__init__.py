"""What is executed: code objects, and instructions as text."""

"""Memory, code objects, workgroups, launches and faults."""

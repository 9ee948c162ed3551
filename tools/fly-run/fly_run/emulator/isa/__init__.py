"""Machine code as instructions: disassembled, parsed, decoded."""

"""Machine code as instructions: disassembling, parsing, decoding."""

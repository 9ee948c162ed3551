"""The fly dialect becomes LLVM's."""

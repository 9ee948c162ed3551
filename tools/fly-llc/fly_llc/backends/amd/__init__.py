"""What LLVM's AMDGPU code generation has."""

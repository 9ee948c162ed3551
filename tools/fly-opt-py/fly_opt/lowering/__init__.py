"""What the passes and the emission of LLVM IR ask of a backend; `fly_opt.backends` answers."""

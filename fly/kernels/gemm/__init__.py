"""Matrix products and what is made of them: see docs/kernels/gemm.md."""

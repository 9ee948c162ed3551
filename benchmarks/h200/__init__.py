"""Kernels that are bound by memory, and launches, on an NVIDIA GPU beside Triton and torch.

    python -m h200 prepare FOLDER             in benchmarks/: compiles our kernels for sm_90a
    python -m h200 run FOLDER RESULTS         on the machine with the GPU

`run` needs the checkout, torch, Triton and the driver, but no compiler of ours and no LLVM; native
launchers need llvmlite. It writes RESULTS/h200.md and RESULTS/h200.json, and prints the tables.
From the root of the checkout:

    PYTHONPATH=.:common:tools/fly-run:tools/fly-trace:benchmarks python -m h200 run FOLDER RESULTS

tiles           our kernels: addition and transposition
rows            our kernels: softmax, layernorm, rmsnorm
variants        which of them are compiled, and which one the tables show
preparing       compiles them
workloads       inputs, expected results, and the same computation in torch
triton_kernels  the same computation in Triton, in several configurations
measuring       times of interleaved repeats
memory_bound    measures the workloads
launched        the function whose launches are measured
launching       measures launches
report          tables
"""

"""What only Hopper has, on an H200: rings of buffers that TMA fills, clusters, dependent launches.

    python -m h200_hopper prepare FOLDER      compiles; needs no GPU
    python -m h200_hopper run FOLDER [COUNT]  COUNT random sizes for each compiled function

Results are compared with torch's: of integers, and of sums of few small ones, exactly.
"""

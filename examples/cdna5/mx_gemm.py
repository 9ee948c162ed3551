"""C = A·Bᵀ of MX formats on gfx1250: fp8 times fp4, with a scale for each 32 values along K.

    mx_gemm(A, SA, B, SB, C)

The tensor data mover copies tiles of 64 × 128 and 64 × 128 values to LDS, the next ones while four
waves multiply. Rows and columns may be ragged: beyond them the mover writes zeros. K is a multiple
of 128. All arrays but C are 32-bit words: of A four values, of B eight, of scales those of 128.
"""

import fly
import fly.expr as fx

ROWS = COLUMNS = 64  # of a block's tile of C, of which each of four waves has 16 rows
DEPTH = 128  # values along K of a tile
WORDS_A, WORDS_B = DEPTH // 4, DEPTH // 8
GAP = 4  # words after a row in LDS, so that the rows that lanes read are in different banks
PITCH_A, PITCH_B = WORDS_A + GAP, WORDS_B + GAP
STAGE_A, STAGE_B = ROWS * PITCH_A, COLUMNS * PITCH_B


@fly.kernel(known_block_size=[128, 1, 1])
def mx_gemm_kernel(A: fx.Tensor, SA: fx.Tensor, B: fx.Tensor, SB: fx.Tensor, C: fx.Tensor):
    tid = fx.thread_idx.x
    wave, lane, half = tid // 32, tid % 16, tid % 32 // 16
    M, N = C.shape.unpack()
    row, column = fx.block_idx.x * ROWS, fx.block_idx.y * COLUMNS
    steps = A.shape[1].unpack() // WORDS_A

    shared = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 2 * (STAGE_A + STAGE_B), 16]).peek()
    held = fx.make_view(shared.ptr, fx.make_layout(2 * (STAGE_A + STAGE_B), 1))
    start_a = fx.add_offset(fx.get_iter(A), fx.Int64(row) * A.stride[0].unpack())
    start_b = fx.add_offset(fx.get_iter(B), fx.Int64(column) * B.stride[0].unpack())
    tile_a = fx.make_view(start_a, fx.make_layout((ROWS, WORDS_A), (WORDS_A, 1)))
    tile_b = fx.make_view(start_b, fx.make_layout((COLUMNS, WORDS_B), (WORDS_B, 1)))
    mover_a = fx.rocdl.cdna5.make_tdm_atom(
        tile_a,
        [M - row, None],
        [A.stride[0].unpack(), None],
        num_warps=4,
        pad_interval=WORDS_A,
        pad_amount=GAP,
    )
    mover_b = fx.rocdl.cdna5.make_tdm_atom(
        tile_b,
        [N - column, None],
        [B.stride[0].unpack(), None],
        num_warps=4,
        pad_interval=WORDS_B,
        pad_amount=GAP,
    )

    def load(step, stage):
        to_a = fx.add_offset(shared.ptr, stage * (STAGE_A + STAGE_B))
        to_b = fx.add_offset(to_a, STAGE_A)
        into_a = fx.make_view(to_a, fx.make_layout((ROWS, WORDS_A), (PITCH_A, 1)))
        into_b = fx.make_view(to_b, fx.make_layout((COLUMNS, WORDS_B), (PITCH_B, 1)))
        fx.copy(mover_a, tile_a, into_a, imm_offset=fx.Int64(step) * (WORDS_A * 4))
        fx.copy(mover_b, tile_b, into_b, imm_offset=fx.Int64(step) * (WORDS_B * 4))

    atom = fx.make_mma_atom(
        fx.rocdl.cdna5.WMMAScale(16, 16, DEPTH, fx.Float8E4M3FN, fx.Float4E2M1FN)
    )
    sums = [fx.make_rmem_tensor(8, fx.Float32) for _ in range(COLUMNS // 16)]
    for c in sums:
        c.fill(0)
    a, b = fx.make_rmem_tensor(16, fx.Int32), fx.make_rmem_tensor(8, fx.Int32)
    own = wave * 16 + lane
    load(0, 0)
    for step in range(steps):
        fx.rocdl.cdna5.s_wait_tensorcnt(0)
        fx.barrier()
        if step + 1 < steps:
            load(step + 1, (step + 1) % 2)
        base = step % 2 * (STAGE_A + STAGE_B)
        # Runs of 16 bytes of a row alternate between the two halves of a wave.
        for i in fx.range_constexpr(16):
            a[i] = held[base + own * PITCH_A + (i // 4 * 2 + half) * 4 + i % 4]
        scale_a = SA[fx.min(row + own, M - 1), step]
        for n in fx.range_constexpr(COLUMNS // 16):
            mine = n * 16 + lane
            for i in fx.range_constexpr(8):
                place = mine * PITCH_B + (i // 4 * 2 + half) * 4 + i % 4
                b[i] = held[base + STAGE_A + place]
            scale_b = SB[fx.min(column + mine, N - 1), step]
            fx.gemm(atom, sums[n], a, b, sums[n], scale_a=scale_a, scale_b=scale_b)
    for n in fx.range_constexpr(COLUMNS // 16):
        for i in fx.range_constexpr(8):
            r, c = row + wave * 16 + half * 8 + i, column + n * 16 + lane
            if (r < M) & (c < N):
                C[r, c] = sums[n][i]


@fly.jit
def mx_gemm(A: fx.Tensor, SA: fx.Tensor, B: fx.Tensor, SB: fx.Tensor, C: fx.Tensor):
    M, N = C.shape.unpack()
    grid = ((M + ROWS - 1) // ROWS, (N + COLUMNS - 1) // COLUMNS, 1)
    mx_gemm_kernel(A, SA, B, SB, C).launch(grid=grid, block=(128, 1, 1))

"""Gray-Scott reaction and diffusion on a torus: spots grow, split and fill the plane.

    python examples/gray_scott.py picture.png

One launch is one time step; the host function unrolls `STEPS` of them, alternating between the
arrays of the caller, which it updates, and a pair that it allocates. J. E. Pearson, "Complex
Patterns in a Simple System", Science 261 (1993).
"""

import sys

import fly
import fly.expr as fx

TILE = 16
STEPS = 20  # time steps per call; even, so that the result is in the caller's arrays
DU, DV, FEED, KILL = 0.16, 0.08, 0.035, 0.065


def laplacian(A, row, column):
    """Computes the five-point stencil at (row, column), wrapping around both edges."""
    height, width = A.shape[0], A.shape[1]
    # Selects instead of `%`: a division of 64-bit integers takes a hundred instructions.
    up = fx.where(row == 0, height - 1, row - 1)
    down = fx.where(row == height - 1, 0, row + 1)
    left = fx.where(column == 0, width - 1, column - 1)
    right = fx.where(column == width - 1, 0, column + 1)
    near = A[up, column] + A[down, column] + A[row, left] + A[row, right]
    return near - 4.0 * A[row, column]


@fly.kernel
def gray_scott_kernel(U: fx.Tensor, V: fx.Tensor, U2: fx.Tensor, V2: fx.Tensor):
    row = fx.Int64(fx.block_idx.y * TILE + fx.thread_idx.y)
    column = fx.Int64(fx.block_idx.x * TILE + fx.thread_idx.x)
    if (row < U.shape[0]) & (column < U.shape[1]):
        u, v = U[row, column], V[row, column]
        reaction = u * v * v
        U2[row, column] = u + DU * laplacian(U, row, column) - reaction + FEED * (1.0 - u)
        V2[row, column] = v + DV * laplacian(V, row, column) + reaction - (FEED + KILL) * v


@fly.jit
def gray_scott(
    U: fx.Tensor[fx.Float32, "height", "width"], V: fx.Tensor[fx.Float32, "height", "width"]
):
    U2 = fx.empty_like(U)
    V2 = fx.empty_like(V)
    grid = (fx.ceildiv(U.shape[1], TILE), fx.ceildiv(U.shape[0], TILE))
    for _ in fx.range_constexpr(STEPS // 2):
        gray_scott_kernel(U, V, U2, V2).launch(grid=grid, block=(TILE, TILE))
        gray_scott_kernel(U2, V2, U, V).launch(grid=grid, block=(TILE, TILE))


def seed(height=128, width=128):
    """Returns u = 1 and v = 0 except for a few squares of reagent."""
    import numpy as np

    u, v = np.ones((height, width), np.float32), np.zeros((height, width), np.float32)
    random = np.random.default_rng(8)
    for row, column in random.integers(0, [height - 8, width - 8], (12, 2)):
        u[row : row + 8, column : column + 8] = 0.5
        v[row : row + 8, column : column + 8] = 0.25
    return u, v


def reference(u, v, steps):
    """Computes the same in NumPy, in float64."""
    import numpy as np

    def laplace(a):
        return sum(np.roll(a, shift, axis) for axis in (0, 1) for shift in (1, -1)) - 4 * a

    u, v = u.astype(np.float64), v.astype(np.float64)
    for _ in range(steps):
        reaction = u * v * v
        u, v = (
            u + DU * laplace(u) - reaction + FEED * (1 - u),
            v + DV * laplace(v) + reaction - (FEED + KILL) * v,
        )
    return u, v


def write_picture(v, path):
    """Writes `v` as a PNG: dark where it is low, bright where it is high."""
    import numpy as np
    from PIL import Image

    level = np.clip(v / max(float(v.max()), 1e-6), 0, 1)
    stops = np.array([[13, 8, 45], [120, 28, 109], [237, 105, 37], [252, 255, 164]], float)
    at = np.linspace(0, 1, len(stops))
    colours = np.stack([np.interp(level, at, stops[:, channel]) for channel in range(3)], -1)
    picture = Image.fromarray(colours.astype(np.uint8))
    picture.resize((v.shape[1] * 4, v.shape[0] * 4), Image.Resampling.BICUBIC).save(path)


def main(path="gray_scott.png", calls=150):
    import numpy as np

    u, v = seed()
    expected_u, expected_v = reference(u, v, STEPS)
    gray_scott(u, v)
    np.testing.assert_allclose(u, expected_u, atol=1e-5)
    np.testing.assert_allclose(v, expected_v, atol=1e-5)
    for _ in range(calls - 1):
        gray_scott(u, v)
    write_picture(v, path)
    print(f"gray_scott: {STEPS} steps within 1e-5 of NumPy's float64; {calls * STEPS} in {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])

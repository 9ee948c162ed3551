#include "../device.h"

// Sobel's gradient |x| + |y| of each channel, saturated; the border is copied.
kernel void sobel(global const uchar4 *in, global uchar4 *out, int width, int height) {
    int x = GID(x), y = GID(y);
    if (x >= width || y >= height)
        return;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[y * width + x] = in[y * width + x];
        return;
    }
    int4 p[9];
    for (int dy = 0; dy < 3; ++dy)
        for (int dx = 0; dx < 3; ++dx)
            p[3 * dy + dx] = __builtin_convertvector(in[(y + dy - 1) * width + x + dx - 1], int4);
    int4 gx = p[2] + 2 * p[5] + p[8] - p[0] - 2 * p[3] - p[6];
    int4 gy = p[6] + 2 * p[7] + p[8] - p[0] - 2 * p[1] - p[2];
    int4 sum = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
    out[y * width + x] = __builtin_convertvector(sum > 255 ? (int4)(255) : sum, uchar4);
}

// A Jacobi step of the five-point stencil in f64.
kernel void five_point(global const double *in, global double *out, int width, int height) {
    int x = GID(x), y = GID(y), i = y * width + x;
    if (x > 0 && y > 0 && x < width - 1 && y < height - 1)
        out[i] = 0.25 * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    else if (x < width && y < height)
        out[i] = in[i];
}

// Generations of Conway's game on a torus of 32×24 cells, one workgroup, both boards in LDS.
kernel __attribute__((reqd_work_group_size(32, 24, 1))) void life(global uchar *cells,
                                                                  int generations) {
    local uchar board[2][24][32];
    int x = LID(x), y = LID(y);
    board[0][y][x] = cells[y * 32 + x];
    BARRIER();
    for (int g = 0; g < generations; ++g) {
        int side = g & 1, sum = 0;
        for (int dy = 23; dy <= 25; ++dy)
            for (int dx = 31; dx <= 33; ++dx)
                sum += board[side][(y + dy) % 24][(x + dx) % 32];
        uchar alive = board[side][y][x];
        board[side ^ 1][y][x] = sum == 3 || (sum == 4 && alive);
        BARRIER();
    }
    cells[y * 32 + x] = board[generations & 1][y][x];
}

// A transpose of 16-bit elements by tiles of 32×32 through LDS with a padded row, 32×8 work items.
kernel __attribute__((reqd_work_group_size(32, 8, 1))) void
transpose(global const ushort *in, global ushort *out, int width, int height) {
    local ushort tile[32][33];
    int x = WID(x) * 32 + LID(x), y = WID(y) * 32 + LID(y);
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height)
            tile[LID(y) + j][LID(x)] = in[(y + j) * width + x];
    BARRIER();
    x = WID(y) * 32 + LID(x);
    y = WID(x) * 32 + LID(y);
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width)
            out[(y + j) * height + x] = tile[LID(x)][LID(y) + j];
}

// Who am I? Three-dimensional grids of three-dimensional workgroups whose last wave is partial.
kernel void places(global int *out, global short *sizes) {
    int i = (GID(z) * GSZ(y) + GID(y)) * GSZ(x) + GID(x);
    out[i] = LID(x) | LID(y) << 4 | LID(z) << 8 | WID(x) << 12 | WID(y) << 16 | WID(z) << 20;
    sizes[3 * i] = (short)(LSZ(x) * 100 + GSZ(x));
    sizes[3 * i + 1] = (short)(LSZ(y) * 100 + GSZ(y));
    sizes[3 * i + 2] = (short)(LSZ(z) * 100 + GSZ(z));
}

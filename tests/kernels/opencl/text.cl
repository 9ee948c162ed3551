#include "../device.h"

// How often the needle occurs in each line of 80 characters, by trying every place.
kernel void search_naive(global const char *text, constant char *needle, int length,
                         global int *found, int lines) {
    int line = GID(x);
    if (line >= lines)
        return;
    int count = 0;
    for (int i = 0; i + length <= 80; ++i) {
        int j = 0;
        while (j < length && text[line * 80 + i + j] == needle[j])
            ++j;
        count += j == length;
    }
    found[line] = count;
}

// The same by Knuth, Morris and Pratt; the table of borders lies in private memory.
kernel void search_kmp(global const char *text, constant char *needle, int length,
                       global int *found, int lines) {
    int line = GID(x);
    if (line >= lines)
        return;
    signed char border[17];
    border[0] = -1;
    for (int i = 0, j = -1; i < length;) {
        while (j >= 0 && needle[i] != needle[j])
            j = border[j];
        border[++i] = (signed char)++j;
    }
    int count = 0;
    for (int i = 0, j = 0; i < 80; ++i) {
        while (j >= 0 && text[line * 80 + i] != needle[j])
            j = border[j];
        if (++j == length) {
            ++count;
            j = border[j];
        }
    }
    found[line] = count;
}

// The first place, or -1, by Horspool; the table of shifts, one for each byte, lies in LDS.
kernel BLOCK(64) void search_horspool(global const uchar *text, constant uchar *needle, int length,
                                      global int *place, int lines) {
    local uchar shift[256];
    for (int c = LID(x); c < 256; c += 64)
        shift[c] = (uchar)length;
    BARRIER();
    if (LID(x) == 0)
        for (int i = 0; i < length - 1; ++i)
            shift[needle[i]] = (uchar)(length - 1 - i);
    BARRIER();
    int line = GID(x);
    if (line >= lines)
        return;
    int found = -1;
    for (int end = length - 1; end < 80; end += shift[text[line * 80 + end]]) {
        int j = 0;
        while (j < length && text[line * 80 + end - j] == needle[length - 1 - j])
            ++j;
        if (j == length) {
            found = end - length + 1;
            break;
        }
    }
    place[line] = found;
}

// Edit distance of two words: a work item for each letter of `a` (a row), in step along diagonals.
kernel void levenshtein(global const char *a, global const char *b, int na, int nb,
                        global int *distance) {
    local short diagonals[3][258];
    int i = LID(x) + 1;
    for (int d = 0; d <= na + nb; ++d) {
        int j = d - i;
        local short *now = diagonals[d % 3], *last = diagonals[(d + 2) % 3],
                    *before = diagonals[(d + 1) % 3];
        if (i == 1 && d <= nb)
            now[0] = (short)d;
        if (i <= na && j == 0)
            now[i] = (short)i;
        if (i <= na && j > 0 && j <= nb) {
            short best = before[i - 1] + (a[i - 1] != b[j - 1]);
            if (last[i] + 1 < best)
                best = last[i] + 1;
            if (last[i - 1] + 1 < best)
                best = last[i - 1] + 1;
            now[i] = best;
        }
        BARRIER();
    }
    if (i == na)
        *distance = diagonals[(na + nb) % 3][na];
}

// Upper case, words counted: sixteen bytes a work item.
kernel void upper(global const uchar16 *in, global uchar16 *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uchar16 text = in[i];
    char16 lower = (text >= (uchar16)('a')) & (text <= (uchar16)('z'));
    out[i] = text - (__builtin_astype(lower, uchar16) & (uchar16)(32));
}

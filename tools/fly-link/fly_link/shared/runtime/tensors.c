/* DLPack's tensors, and numbers of 16 bits. */

#include "library.h"

#include <stdlib.h>
#include <string.h>

/* The strides of a tensor; null are those of C order. */
const int64_t *fly_strides(const Tensor *tensor, int64_t *room) {
  if (tensor->strides)
    return tensor->strides;
  uint64_t step = 1;
  for (int32_t n = tensor->ndim - 1; n >= 0; n--) {
    room[n] = (int64_t)step;
    step *= tensor->shape[n] > 1 ? (uint64_t)tensor->shape[n] : 1;
  }
  return room;
}

/* Whether no two elements are in one place. */
_Bool fly_apart(int64_t rank, const int64_t *shape, const int64_t *strides) {
  enum { MOST = 64 };
  int64_t extents[MOST], steps[MOST], count = 0, reach = 1, span = 1;
  uint64_t elements = 1;
  if (rank > MOST)
    return 0;
  for (int64_t n = 0; n < rank; n++) {
    int64_t step = strides[n] < 0 ? -strides[n] : strides[n], at = count;
    if (shape[n] == 0)
      return 1;
    if (shape[n] == 1)
      continue;
    for (; at > 0 && steps[at - 1] > step; at--) {
      steps[at] = steps[at - 1];
      extents[at] = extents[at - 1];
    }
    steps[at] = step;
    extents[at] = shape[n];
    count++;
    elements *= (uint64_t)shape[n];
    span += (shape[n] - 1) * step;
  }
  int64_t at = 0;
  for (; at < count && steps[at] >= reach; at++)
    reach += steps[at] * (extents[at] - 1);
  if (at == count)
    return 1;
  if (elements > (uint64_t)span)
    return 0;
  /* Interleaved dimensions, which are rare: a bit for each place. */
  uint8_t *seen = calloc((size_t)(span / 8 + 1), 1);
  int64_t index[MOST] = {0}, place = 0;
  _Bool apart = seen != NULL;
  while (apart) {
    if (seen[place >> 3] >> (place & 7) & 1) {
      apart = 0;
      break;
    }
    seen[place >> 3] |= (uint8_t)(1 << (place & 7));
    int64_t n = 0;
    for (; n < count && ++index[n] == extents[n]; n++) {
      place -= steps[n] * (extents[n] - 1);
      index[n] = 0;
    }
    if (n == count)
      break;
    place += steps[n];
  }
  free(seen);
  return apart;
}

/* A float as a bf16, rounded to nearest, ties to even; whether it fits. */
_Bool fly_bfloat(float value, uint16_t *result) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value != value) {
    *result = (uint16_t)(bits >> 16 | 0x40);
    return 1;
  }
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  *result = (uint16_t)(rounded >> 16);
  return (*result & 0x7fff) != 0x7f80 || (bits & 0x7fffffff) == 0x7f800000;
}

/* The same for f16. */
_Bool fly_half(float value, uint16_t *result) {
  uint32_t bits, sign, size;
  memcpy(&bits, &value, sizeof bits);
  sign = bits >> 16 & 0x8000;
  size = bits & 0x7fffffff;
  if (size >= 0x7f800000) {
    *result = (uint16_t)(sign | (size > 0x7f800000 ? 0x7e00 : 0x7c00));
    return 1;
  }
  if (size >= 0x477ff000) /* 65520, half way to what would be 65536 */
    return 0;
  if (size < 0x38800000) { /* below 2^-14: in steps of 2^-24 */
    uint32_t shift = 126 - (size >> 23), whole = (size & 0x7fffff) | 0x800000;
    uint32_t low = shift > 31 ? 0 : whole >> shift;
    uint32_t rest = shift > 31 ? 0 : whole << (32 - shift);
    low += rest > 0x80000000u || (rest == 0x80000000u && (low & 1));
    *result = (uint16_t)(sign | low);
    return 1;
  }
  size += 0xfff + (size >> 13 & 1);
  *result = (uint16_t)(sign | ((size - 0x38000000) >> 13));
  return 1;
}

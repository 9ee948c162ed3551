/* The text of the last error: what is said since the call began. */

#include "library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };
static _Thread_local char text[ROOM];
static _Thread_local size_t length;

void fly_clear(void) {
  length = 0;
  text[0] = 0;
}

const char *fly_text(void) { return text; }

void fly_say(const char *words) {
  size_t count = strlen(words), room = ROOM - 1 - length;
  if (count > room)
    count = room;
  memcpy(text + length, words, count);
  length += count;
  text[length] = 0;
}

void fly_say_number(int64_t value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%lld", (long long)value);
  fly_say(digits);
}

void fly_say_hex(uint64_t value) {
  char digits[32];
  snprintf(digits, sizeof digits, "0x%llx", (unsigned long long)value);
  fly_say(digits);
}

/* The fewest digits that read as the same number, as Python writes it. */
void fly_say_float(double value) {
  char digits[40];
  int count = 1;
  for (; count < 17; count++) {
    snprintf(digits, sizeof digits, "%.*e", count - 1, value);
    if (strtod(digits, NULL) == value)
      break;
  }
  snprintf(digits, sizeof digits, "%.*e", count - 1, value);
  const char *exponent = strchr(digits, 'e'); /* null: infinite, or not a number */
  int power = exponent ? (int)strtol(exponent + 1, NULL, 10) : 0;
  if (exponent && power >= -4 && power < 16)
    snprintf(digits, sizeof digits, "%.*f", count - 1 > power ? count - 1 - power : 1, value);
  fly_say(digits);
}

/* As Python writes a tuple. */
void fly_say_array(const int64_t *values, int64_t count) {
  fly_say("(");
  for (int64_t n = 0; n < count; n++) {
    if (n)
      fly_say(", ");
    fly_say_number(values[n]);
  }
  fly_say(count == 1 ? ",)" : ")");
}

/* A grid or a block: 64, 8×8, 4×4×4. */
void fly_say_triple(const int64_t *values) {
  int count = values[2] != 1 ? 3 : values[1] != 1 ? 2 : 1;
  for (int n = 0; n < count; n++) {
    if (n)
      fly_say("×");
    fly_say_number(values[n]);
  }
}

void fly_say_dtype(uint32_t dtype) {
  static const char *const plain[] = {"i", "u", "f", "an opaque type of ", "bf", "complex", "bool"};
  static const char *const eights[] = {"f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"};
  uint32_t code = dtype & 255, bits = dtype >> 8 & 255, lanes = dtype >> 16;
  if (code >= 10 && code <= 14) {
    fly_say(eights[code - 10]);
  } else if (code < 7) {
    fly_say(plain[code]);
    if (code != 6)
      fly_say_number(bits);
  } else {
    fly_say("of DLPack's type code ");
    fly_say_number(code);
  }
  if (lanes != 1) {
    fly_say("x");
    fly_say_number(lanes);
  }
}

void fly_say_place(Place place) {
  if (place.type == CPU) {
    fly_say("in host memory");
    return;
  }
  fly_say("on ");
  if (place.type == CUDA || place.type == HIP) {
    fly_say(place.type == CUDA ? "cuda:" : "rocm:");
  } else {
    fly_say("DLPack's device type ");
    fly_say_number(place.type);
    fly_say(", number ");
  }
  fly_say_number(place.id);
}

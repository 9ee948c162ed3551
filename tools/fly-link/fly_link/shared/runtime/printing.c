/* What kernels print: vprintf's format and packed arguments, as CUDA's printf formats them. */

#include "cpu.h"

#include <stdio.h>
#include <string.h>

static const char *take(const char **values, size_t size) {
  uintptr_t at = ((uintptr_t)*values + size - 1) / size * size;
  *values = (const char *)(at + size);
  return (const char *)at;
}

static int32_t take_int(const char **values) {
  int32_t value;
  memcpy(&value, take(values, 4), 4);
  return value;
}

static long long take_long(const char **values) {
  long long value;
  memcpy(&value, take(values, 8), 8);
  return value;
}

/* A conversion: %[flags][width][.precision][length]letter. `form` is the C library's; 0 if the text
   is none. */
static const char *parse(const char *at, const char **values, char *form, _Bool *wide) {
  char *to = form, *end = form + 40;
  *to++ = *at++;
  while (*at && strchr("-+ #0", *at) && to < end)
    *to++ = *at++;
  for (int32_t part = 0; part < 2; part++) {
    if (part && *at != '.')
      break;
    if (part)
      *to++ = *at++;
    if (*at == '*') {
      at++;
      to += snprintf(to, 16, "%d", take_int(values));
    }
    while (*at >= '0' && *at <= '9' && to < end)
      *to++ = *at++;
  }
  *wide = 0;
  while (*at && strchr("hlzjt", *at))
    *wide |= *at++ != 'h';
  *to = 0;
  return *at && strchr("diuoxXcsfFeEgGaAp%", *at) ? at : NULL;
}

static void convert(char letter, char *form, _Bool wide, const char **values) {
  size_t end = strlen(form);
  const char tail[] = {'l', 'l', letter, 0};
  if (letter == '%') {
    fputc('%', stdout);
  } else if (strchr("diuoxX", letter)) {
    strcpy(form + end, tail);
    _Bool negative = letter == 'd' || letter == 'i';
    long long value = wide ? take_long(values) : take_int(values);
    printf(form, negative || wide ? value : (long long)(uint32_t)value);
  } else if (letter == 'c') {
    strcpy(form + end, "c");
    printf(form, take_int(values) & 255);
  } else if (letter == 's') {
    const char *text = (const char *)(uintptr_t)take_long(values);
    strcpy(form + end, "s");
    printf(form, text ? text : "(null)");
  } else if (letter == 'p') {
    char digits[32];
    snprintf(digits, sizeof digits, "0x%llx", (unsigned long long)take_long(values));
    strcpy(form + end, "s");
    printf(form, digits);
  } else {
    double value;
    memcpy(&value, take(values, 8), 8);
    form[end] = letter;
    form[end + 1] = 0;
    printf(form, value);
  }
}

void fly_print(const char *format, const char *values) {
  for (const char *at = format; *at; at++) {
    char form[64];
    _Bool wide;
    const char *before = values, *letter = NULL;
    if (*at == '%' && (letter = parse(at, &values, form, &wide))) {
      convert(*letter, form, wide, &values);
      at = letter;
    } else {
      if (*at == '%')
        values = before;
      fputc(*at, stdout);
    }
  }
  fflush(stdout);
}

/* Calls every function of sz.h and provokes every status that a caller can. Prints what is wrong and
 * exits with 1. Built and run by test_sz_c_api.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sz/sz.h"

#define COUNT 3000

static int failures = 0;

static void expect(int good, const char* what, int line) {
  if (good) return;
  printf("line %d: %s\n", line, what);
  failures++;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

/* The status is as expected, and an error says something in one line. */
static void status(sz_context* context, sz_status got, sz_status wanted, const char* word,
                   int line) {
  const char* text = sz_last_error(context);
  if (got != wanted) {
    printf("line %d: status %d (%s) instead of %d: %s\n", line, (int)got, sz_status_text(got),
           (int)wanted, text);
    failures++;
  }
  expect(strstr(text, word) != NULL && strchr(text, '\n') == NULL, text, line);
}
#define STATUS(call, wanted, word) status(context, (call), (wanted), (word), __LINE__)
#define OK(call) STATUS(call, SZ_OK, "")

static const int64_t shape[2] = {50, 60};

static void fill(float* floats, double* doubles) {
  int i;
  for (i = 0; i < COUNT; i++) {
    doubles[i] = i % 3 == 0 ? 0 : sin(i * 0.01) + i % 7;
    floats[i] = (float)doubles[i];
  }
}

static void test_float(sz_context* context, const float* values) {
  static float restored[COUNT], part[100];
  static uint8_t stream[COUNT * 4 + 8000];
  size_t size = 0, lossless = 0;
  sz_options options;
  sz_info info;
  int i;
  EXPECT(sz_max_compressed_size(COUNT, 2, SZ_FLOAT32) <= sizeof(stream));
  sz_default_options(&options, sizeof(options));
  options.error_bound = 0.01;
  EXPECT(options.negative_factor == 1);
  options.keep_sign = 1;
  options.negative_factor = 4;
  options.dither = 1;
  options.seed = 77;
  options.checksum = 1;
  options.threads = 2;
  OK(sz_compress_float(context, values, shape, 2, &options, stream, sizeof(stream), &size));
  EXPECT(size > 100 && size < COUNT * 2);
  EXPECT(sz_last_error(context)[0] == '\0');
  OK(sz_read_info(context, stream, size, &info, sizeof(info)));
  EXPECT(info.version == 3 && info.type == SZ_FLOAT32 && info.error_bound == 0.01);
  EXPECT(info.keep_sign == 1 && info.dither == 1 && info.seed == 77 && info.checksum == 1);
  EXPECT(info.negative_factor == 4);
  EXPECT(info.count == COUNT && info.raw_bytes == COUNT * 4 && info.compressed_bytes == size);
  EXPECT(info.axes == 2 && info.shape[0] == 50 && info.shape[1] == 60 && info.shape[2] == 0);
  EXPECT(info.chunks == 1 && info.chunk_values >= COUNT);
  OK(sz_decompress_float(context, stream, size, restored, COUNT, 1));
  for (i = 0; i < COUNT; i++) {
    double bound = values[i] < 0 ? 0.04 : 0.01;
    EXPECT(fabs((double)restored[i] - (double)values[i]) <= bound);
    EXPECT((restored[i] > 0) == (values[i] > 0) && (restored[i] < 0) == (values[i] < 0));
  }
  OK(sz_decompress_range_float(context, stream, size, 1234, 100, part, 0));
  EXPECT(memcmp(part, restored + 1234, sizeof(part)) == 0);
  OK(sz_compress_float(context, values, shape, 2, NULL, stream, sizeof(stream), &lossless));
  OK(sz_decompress_float(context, stream, lossless, restored, COUNT, 0));
  EXPECT(memcmp(restored, values, sizeof(restored)) == 0);
}

static void test_double(sz_context* context, const double* values) {
  static double restored[COUNT], part[1];
  static uint8_t stream[COUNT * 8 + 8000];
  size_t size = 0;
  sz_options options;
  sz_info info;
  int i;
  EXPECT(sz_max_compressed_size(COUNT, 2, SZ_FLOAT64) <= sizeof(stream));
  sz_default_options(&options, sizeof(options));
  options.error_bound = 0.001;
  options.bound = SZ_RANGE;
  options.row_length = 30;
  OK(sz_compress_double(context, values, shape, 2, &options, stream, sizeof(stream), &size));
  OK(sz_read_info(context, stream, size, &info, sizeof(info)));
  EXPECT(info.type == SZ_FLOAT64 && info.raw_bytes == COUNT * 8 && info.dither == 0);
  EXPECT(info.negative_factor == 1);
  EXPECT(info.error_bound > 0.006 && info.error_bound < 0.009);
  OK(sz_decompress_double(context, stream, size, restored, COUNT, 0));
  for (i = 0; i < COUNT; i++) EXPECT(fabs(restored[i] - values[i]) <= info.error_bound);
  OK(sz_decompress_range_double(context, stream, size, COUNT - 1, 1, part, 0));
  EXPECT(part[0] == restored[COUNT - 1]);
  STATUS(sz_decompress_float(context, stream, size, (float*)restored, COUNT, 0), SZ_BAD_ARGUMENT,
         "float64");
  EXPECT(sz_last_error(context)[0] != '\0');
}

static void test_bad_compression(sz_context* context, const float* values) {
  static uint8_t stream[COUNT * 4 + 8000];
  static int64_t many[33];
  const int64_t negative[1] = {-1}, huge[2] = {(int64_t)1 << 40, (int64_t)1 << 40}, empty[1] = {0};
  sz_options options;
  size_t size = 99, room = sizeof(stream);
#define COMPRESS(src, shape, axes, dst, capacity) \
  sz_compress_float(context, src, shape, axes, &options, dst, capacity, &size)
  sz_default_options(&options, sizeof(options));
  STATUS(sz_compress_float(context, values, shape, 2, &options, stream, room, NULL),
         SZ_BAD_ARGUMENT, "size");
  STATUS(COMPRESS(NULL, shape, 2, stream, room), SZ_BAD_ARGUMENT, "src");
  EXPECT(size == 0);
  STATUS(COMPRESS(values, NULL, 2, stream, room), SZ_BAD_ARGUMENT, "shape");
  STATUS(COMPRESS(values, many, 33, stream, room), SZ_BAD_ARGUMENT, "axes");
  STATUS(COMPRESS(values, negative, 1, stream, room), SZ_BAD_ARGUMENT, "negative");
  STATUS(COMPRESS(values, huge, 2, stream, room), SZ_BAD_ARGUMENT, "overflows");
  STATUS(COMPRESS(values, shape, 2, NULL, room), SZ_BAD_ARGUMENT, "dst");
  STATUS(COMPRESS(values, shape, 2, stream, 1000), SZ_TOO_SMALL, "capacity");
  STATUS(COMPRESS(values, shape, 2, NULL, 0), SZ_TOO_SMALL, "capacity");
  OK(COMPRESS(NULL, empty, 1, stream, room));
  EXPECT(size == 48);
  OK(COMPRESS(values, NULL, 0, stream, room)); /* one value without axes */
  options.error_bound = -1;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "error_bound");
  options.error_bound = HUGE_VAL;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "error_bound");
  options.error_bound = 1;
  options.bound = 7;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "SZ_RANGE");
  options.bound = SZ_ABSOLUTE;
  options.threads = -1;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "threads");
  options.threads = 0;
  options.row_length = -5;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "row_length");
  options.row_length = 0;
  options.negative_factor = 2;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "needs keep_sign");
  options.negative_factor = 0.5;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "negative_factor");
  options.negative_factor = 1;
  options.size = 3;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "sz_default_options");
  options.size = sizeof(options) + 8;
  STATUS(COMPRESS(values, shape, 2, stream, room), SZ_BAD_ARGUMENT, "sz_default_options");
}

static void test_bad_streams(sz_context* context, const float* values) {
  static uint8_t stream[COUNT * 4 + 8000];
  static float restored[COUNT];
  sz_options options;
  sz_info info;
  size_t size = 0;
  sz_default_options(&options, sizeof(options));
  options.error_bound = 0.1;
  options.checksum = 1;
  OK(sz_compress_float(context, values, shape, 2, &options, stream, sizeof(stream), &size));
  STATUS(sz_decompress_float(context, NULL, size, restored, COUNT, 0), SZ_BAD_ARGUMENT, "src");
  STATUS(sz_decompress_float(context, stream, size, NULL, COUNT, 0), SZ_BAD_ARGUMENT, "dst");
  STATUS(sz_decompress_float(context, stream, size, restored, COUNT, -1), SZ_BAD_ARGUMENT,
         "threads");
  STATUS(sz_decompress_float(context, stream, size, restored, COUNT - 1, 0), SZ_BAD_ARGUMENT,
         "count");
  STATUS(sz_decompress_range_float(context, stream, size, 2990, 11, restored, 0), SZ_BAD_ARGUMENT,
         "range");
  STATUS(sz_decompress_range_float(context, stream, size, (uint64_t)-1, 2, restored, 0),
         SZ_BAD_ARGUMENT, "range");
  OK(sz_decompress_range_float(context, stream, size, COUNT, 0, NULL, 0));
  STATUS(sz_decompress_double(context, stream, size, (double*)restored, COUNT, 0), SZ_BAD_ARGUMENT,
         "float32");
  STATUS(sz_decompress_float(context, stream, size - 1, restored, COUNT, 0), SZ_BAD_STREAM,
         "malformed");
  STATUS(sz_decompress_range_float(context, stream, 7, 0, 1, restored, 0), SZ_BAD_STREAM, "header");
  STATUS(sz_read_info(context, stream, 7, &info, sizeof(info)), SZ_BAD_STREAM, "header");
  STATUS(sz_read_info(context, NULL, 0, &info, sizeof(info)), SZ_BAD_ARGUMENT, "src");
  STATUS(sz_read_info(context, stream, size, NULL, sizeof(info)), SZ_BAD_ARGUMENT, "info");
  STATUS(sz_read_info(context, stream, size, &info, 4), SZ_BAD_ARGUMENT, "info_size");
  STATUS(sz_read_info(context, stream, size, &info, sizeof(info) + 1), SZ_BAD_ARGUMENT,
         "info_size");
  stream[size - 1] ^= 8;
  STATUS(sz_decompress_float(context, stream, size, restored, COUNT, 0), SZ_BAD_STREAM, "chunk 0");
}

static void test_without_a_context(const float* values) {
  uint8_t stream[100] = {0};
  float restored[1];
  double wide[1] = {0};
  size_t size;
  sz_info info;
  EXPECT(sz_compress_float(NULL, values, shape, 2, NULL, stream, 100, &size) == SZ_BAD_ARGUMENT);
  EXPECT(sz_compress_double(NULL, wide, shape, 2, NULL, stream, 100, &size) == SZ_BAD_ARGUMENT);
  EXPECT(sz_decompress_float(NULL, stream, 100, restored, 1, 0) == SZ_BAD_ARGUMENT);
  EXPECT(sz_decompress_double(NULL, stream, 100, wide, 1, 0) == SZ_BAD_ARGUMENT);
  EXPECT(sz_decompress_range_float(NULL, stream, 100, 0, 1, restored, 0) == SZ_BAD_ARGUMENT);
  EXPECT(sz_decompress_range_double(NULL, stream, 100, 0, 1, wide, 0) == SZ_BAD_ARGUMENT);
  EXPECT(sz_read_info(NULL, stream, 100, &info, sizeof(info)) == SZ_BAD_ARGUMENT);
  EXPECT(strstr(sz_last_error(NULL), "context") != NULL);
  sz_free_context(NULL);
  sz_default_options(NULL, 0);
}

static void test_texts_and_sizes(void) {
  int i, j;
  for (i = 0; i <= SZ_INTERNAL_ERROR; i++) {
    EXPECT(strlen(sz_status_text((sz_status)i)) > 5);
    for (j = 0; j < i; j++) {
      EXPECT(strcmp(sz_status_text((sz_status)i), sz_status_text((sz_status)j)) != 0);
    }
  }
  EXPECT(strcmp(sz_status_text((sz_status)99), "unknown status") == 0);
  EXPECT(sz_max_compressed_size(0, 0, SZ_FLOAT32) >= 40);
  EXPECT(sz_max_compressed_size(1000, 1, SZ_FLOAT64) > 8000);
  EXPECT(sz_max_compressed_size((size_t)-1, 1, SZ_FLOAT64) == 0);
  EXPECT(sz_max_compressed_size(10, 33, SZ_FLOAT32) == 0);
}

int main(void) {
  static float floats[COUNT];
  static double doubles[COUNT];
  sz_context* context = sz_create_context();
  EXPECT(context != NULL && sz_last_error(context)[0] == '\0');
  fill(floats, doubles);
  test_float(context, floats);
  test_double(context, doubles);
  test_bad_compression(context, floats);
  test_bad_streams(context, floats);
  test_without_a_context(floats);
  test_texts_and_sizes();
  sz_free_context(context);
  printf("%d failures\n", failures);
  return failures > 0;
}

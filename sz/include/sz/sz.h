/* sz for C: see sz.hpp for what it is for and what it promises, FORMAT.md for the bytes.
 *
 *     sz_context* context = sz_create_context();
 *     sz_options options;
 *     sz_default_options(&options, sizeof(options));
 *     options.error_bound = 1e-3;
 *     capacity = sz_max_compressed_size(count, 2, SZ_FLOAT32);
 *     status = sz_compress_float(context, values, shape, 2, &options, stream, capacity, &size);
 *     if (status != SZ_OK) fprintf(stderr, "%s\n", sz_last_error(context));
 *     status = sz_decompress_float(context, stream, size, values, count, 0);
 *     sz_free_context(context);
 *
 * No function throws, aborts or prints. A context serves one call at a time; threads have one each.
 */
#ifndef SZ_SZ_H_
#define SZ_SZ_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SZ_API __attribute__((visibility("default")))
#else
#define SZ_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sz_status {
  SZ_OK = 0,
  SZ_BAD_ARGUMENT = 1,  /* an argument makes no sense, or does not fit the stream */
  SZ_BAD_STREAM = 2,    /* no stream of sz, or a damaged one */
  SZ_TOO_SMALL = 3,     /* the room for the output does not suffice */
  SZ_OUT_OF_MEMORY = 4, /* of the process */
  SZ_INTERNAL_ERROR = 5 /* a defect of the library */
} sz_status;

typedef enum sz_type { SZ_FLOAT32 = 0, SZ_FLOAT64 = 1 } sz_type;

/* Unit of an error bound: the values' own, or the difference of the largest and smallest. */
typedef enum sz_bound { SZ_ABSOLUTE = 0, SZ_RANGE = 1 } sz_bound;

/* Scratch memory, and the message of the last error. */
typedef struct sz_context sz_context;

/* Fill it with sz_default_options() before setting fields: later versions add some at the end. */
typedef struct sz_options {
  size_t size;            /* set by sz_default_options() */
  double error_bound;     /* finite, not negative; 0: lossless. Default 0 */
  double negative_factor; /* bound of negative values in error bounds, 1 to 1024; default 1.
                             Other than 1 it needs keep_sign, and leaves negative values without
                             dither */
  int32_t bound;          /* an sz_bound; default SZ_ABSOLUTE */
  int32_t keep_sign;      /* not 0: no value becomes zero or changes its sign; default 0 */
  int32_t dither;         /* not 0: subtractive dither from `seed`; default 0 */
  uint32_t seed;          /* default 0 */
  int64_t row_length;     /* values in a row, for prediction; 0, the default: the last axis */
  int32_t checksum;       /* not 0: let decoding find damage; default 0 */
  int32_t threads;        /* 0, the default: OpenMP's default */
} sz_options;

#define SZ_MAX_AXES 32

typedef struct sz_info {
  int32_t version;
  int32_t type;       /* an sz_type */
  double error_bound; /* absolute */
  double negative_factor;
  int32_t keep_sign;
  int32_t dither;
  uint32_t seed;
  int32_t checksum;
  uint64_t count; /* of values, the product of the axes */
  uint64_t raw_bytes;
  uint64_t compressed_bytes;
  uint64_t chunks;
  uint64_t chunk_values; /* in each chunk but the last */
  int32_t axes;
  int64_t shape[SZ_MAX_AXES]; /* 0 behind the last axis */
} sz_info;

/* What a status means, in a few words; never NULL. */
SZ_API const char* sz_status_text(sz_status status);

/* NULL if there is no memory. */
SZ_API sz_context* sz_create_context(void);
/* NULL is fine. */
SZ_API void sz_free_context(sz_context* context);
/* One line about the last call with this context that failed, valid until the next call; "" before. */
SZ_API const char* sz_last_error(const sz_context* context);

/* `size` is sizeof(sz_options). */
SZ_API void sz_default_options(sz_options* options, size_t size);

/* Bytes that always suffice; 0 if the number would overflow. */
SZ_API size_t sz_max_compressed_size(size_t count, size_t axes, sz_type type);

/* Compresses the product of the `axes` numbers at `shape` values (row-major) into dst and sets *size to
 * the bytes written. `options` may be NULL: lossless. SZ_TOO_SMALL if they do not fit `capacity`. */
SZ_API sz_status sz_compress_float(sz_context* context, const float* src, const int64_t* shape,
                                   size_t axes, const sz_options* options, uint8_t* dst,
                                   size_t capacity, size_t* size);
SZ_API sz_status sz_compress_double(sz_context* context, const double* src, const int64_t* shape,
                                    size_t axes, const sz_options* options, uint8_t* dst,
                                    size_t capacity, size_t* size);

/* Restores all `count` values of a stream. After an error dst is unspecified. */
SZ_API sz_status sz_decompress_float(sz_context* context, const uint8_t* src, size_t size,
                                     float* dst, size_t count, int threads);
SZ_API sz_status sz_decompress_double(sz_context* context, const uint8_t* src, size_t size,
                                      double* dst, size_t count, int threads);

/* Restores the values [first, first + count) alone. */
SZ_API sz_status sz_decompress_range_float(sz_context* context, const uint8_t* src, size_t size,
                                           uint64_t first, size_t count, float* dst, int threads);
SZ_API sz_status sz_decompress_range_double(sz_context* context, const uint8_t* src, size_t size,
                                            uint64_t first, size_t count, double* dst, int threads);

/* Reads a stream's header; `info_size` is sizeof(sz_info). */
SZ_API sz_status sz_read_info(sz_context* context, const uint8_t* src, size_t size, sz_info* info,
                              size_t info_size);

#ifdef __cplusplus
}
#endif

#endif

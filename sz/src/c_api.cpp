// The C interface: checks pointers, turns exceptions into statuses.
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "sz/sz.h"
#include "sz/sz.hpp"

struct sz_context {
  sz::Context context;
  std::string error;
};

namespace {

constexpr size_t kFirstOptionsSize = sizeof(sz_options);  // of version 0.1
constexpr size_t kFirstInfoSize = sizeof(sz_info);

// A failure that the C++ interface knows no exception for.
struct Failure {
  sz_status status;
  const char* message;
};

void require(bool condition, const char* message) {
  if (!condition) throw Failure{SZ_BAD_ARGUMENT, message};
}

// The message is lost where there is no memory for it; the status tells.
sz_status keep(sz_context* context, sz_status status, const char* message) noexcept {
  try {
    context->error = message;
  } catch (const std::bad_alloc&) {
    context->error.clear();
  }
  return status;
}

template <typename Work>
sz_status guarded(sz_context* context, const Work& work) noexcept {
  if (context == nullptr) return SZ_BAD_ARGUMENT;
  try {
    context->error.clear();
    work();
    return SZ_OK;
  } catch (const Failure& failure) {
    return keep(context, failure.status, failure.message);
  } catch (const sz::ArgumentError& error) {
    return keep(context, SZ_BAD_ARGUMENT, error.what());
  } catch (const sz::Error& error) {
    return keep(context, SZ_BAD_STREAM, error.what());
  } catch (const std::bad_alloc&) {
    return keep(context, SZ_OUT_OF_MEMORY, "sz: out of memory");
  } catch (const std::exception& error) {
    return keep(context, SZ_INTERNAL_ERROR, error.what());
  } catch (...) {
    return keep(context, SZ_INTERNAL_ERROR, "sz: an unknown exception");
  }
}

// Fields that the caller's version of the struct lacks keep their defaults.
sz::Options make_options(const sz_options* given) {
  sz_options options;
  sz_default_options(&options, sizeof(options));
  if (given != nullptr) {
    require(given->size >= kFirstOptionsSize && given->size <= sizeof(options),
            "sz: options: size is none of sz_options; call sz_default_options() first");
    std::memcpy(&options, given, given->size);
  }
  require(options.bound == SZ_ABSOLUTE || options.bound == SZ_RANGE,
          "sz: options: bound is neither SZ_ABSOLUTE nor SZ_RANGE");
  sz::Options result;
  result.error_bound = options.error_bound;
  result.bound = options.bound == SZ_RANGE ? sz::Bound::Range : sz::Bound::Absolute;
  result.negative_factor = options.negative_factor;
  result.keep_sign = options.keep_sign != 0;
  result.dither = options.dither != 0;
  result.seed = options.seed;
  result.row_length = options.row_length;
  result.checksum = options.checksum != 0;
  result.threads = options.threads;
  return result;
}

bool any_values(const std::vector<int64_t>& shape) {
  for (const int64_t axis : shape) {
    if (axis == 0) return false;
  }
  return true;
}

template <typename T>
sz_status compress(sz_context* context, const T* src, const int64_t* shape, size_t axes,
                   const sz_options* options, uint8_t* dst, size_t capacity, size_t* size) {
  return guarded(context, [&] {
    require(size != nullptr, "sz: size: is NULL");
    *size = 0;
    require(shape != nullptr || axes == 0, "sz: shape: is NULL");
    require(axes <= SZ_MAX_AXES, "sz: shape: has more than 32 axes");
    const std::vector<int64_t> sides(shape, shape + axes);
    require(src != nullptr || !any_values(sides), "sz: src: is NULL");
    require(dst != nullptr || capacity == 0, "sz: dst: is NULL");
    *size = sz::compress(context->context, src, sides, make_options(options), dst, capacity);
    if (*size == 0) {
      throw Failure{SZ_TOO_SMALL, "sz: capacity: too small; sz_max_compressed_size() suffices"};
    }
  });
}

void check_stream(const uint8_t* src, const void* dst, size_t count, int threads) {
  require(src != nullptr, "sz: src: is NULL");
  require(dst != nullptr || count == 0, "sz: dst: is NULL");
  require(threads >= 0, "sz: threads: is negative; 0 means the default");
}

template <typename T>
sz_status decompress(sz_context* context, const uint8_t* src, size_t size, T* dst, size_t count,
                     int threads) {
  return guarded(context, [&] {
    check_stream(src, dst, count, threads);
    sz::decompress(context->context, src, size, dst, count, threads);
  });
}

template <typename T>
sz_status decompress_range(sz_context* context, const uint8_t* src, size_t size, uint64_t first,
                           size_t count, T* dst, int threads) {
  return guarded(context, [&] {
    check_stream(src, dst, count, threads);
    sz::decompress_range(context->context, src, size, first, count, dst, threads);
  });
}

void fill_info(const sz::Info& info, sz_info* result) {
  result->version = info.version;
  result->type = info.type == sz::Type::Float64 ? SZ_FLOAT64 : SZ_FLOAT32;
  result->error_bound = info.error_bound;
  result->negative_factor = info.negative_factor;
  result->keep_sign = info.keep_sign ? 1 : 0;
  result->dither = info.dither ? 1 : 0;
  result->seed = info.seed;
  result->checksum = info.checksum ? 1 : 0;
  result->count = info.count;
  result->raw_bytes = info.raw_bytes;
  result->compressed_bytes = info.compressed_bytes;
  result->chunks = info.chunks;
  result->chunk_values = info.chunk_values;
  result->axes = static_cast<int32_t>(info.shape.size());
  for (size_t i = 0; i < info.shape.size(); i++) result->shape[i] = info.shape[i];
}

}  // namespace

const char* sz_status_text(sz_status status) {
  static const char* const kTexts[] = {"no error",        "bad argument",  "malformed stream",
                                       "too little room", "out of memory", "internal error"};
  const auto index = static_cast<size_t>(status);
  return index < sizeof(kTexts) / sizeof(*kTexts) ? kTexts[index] : "unknown status";
}

sz_context* sz_create_context(void) {
  try {
    return new sz_context;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void sz_free_context(sz_context* context) {
  delete context;
}

const char* sz_last_error(const sz_context* context) {
  return context == nullptr ? "sz: context: is NULL" : context->error.c_str();
}

void sz_default_options(sz_options* options, size_t size) {
  if (options == nullptr || size < sizeof(options->size)) return;
  std::memset(options, 0, size);
  options->size = size;
  if (size >= sizeof(*options)) options->negative_factor = 1;
}

size_t sz_max_compressed_size(size_t count, size_t axes, sz_type type) {
  // Far more than any machine has, and far enough from the end of size_t.
  constexpr size_t kMost = std::numeric_limits<size_t>::max() / 32;
  if (count > kMost || axes > SZ_MAX_AXES) return 0;
  return sz::max_compressed_size(count, axes,
                                 type == SZ_FLOAT64 ? sz::Type::Float64 : sz::Type::Float32);
}

sz_status sz_compress_float(sz_context* context, const float* src, const int64_t* shape,
                            size_t axes, const sz_options* options, uint8_t* dst, size_t capacity,
                            size_t* size) {
  return compress(context, src, shape, axes, options, dst, capacity, size);
}

sz_status sz_compress_double(sz_context* context, const double* src, const int64_t* shape,
                             size_t axes, const sz_options* options, uint8_t* dst, size_t capacity,
                             size_t* size) {
  return compress(context, src, shape, axes, options, dst, capacity, size);
}

sz_status sz_decompress_float(sz_context* context, const uint8_t* src, size_t size, float* dst,
                              size_t count, int threads) {
  return decompress(context, src, size, dst, count, threads);
}

sz_status sz_decompress_double(sz_context* context, const uint8_t* src, size_t size, double* dst,
                               size_t count, int threads) {
  return decompress(context, src, size, dst, count, threads);
}

sz_status sz_decompress_range_float(sz_context* context, const uint8_t* src, size_t size,
                                    uint64_t first, size_t count, float* dst, int threads) {
  return decompress_range(context, src, size, first, count, dst, threads);
}

sz_status sz_decompress_range_double(sz_context* context, const uint8_t* src, size_t size,
                                     uint64_t first, size_t count, double* dst, int threads) {
  return decompress_range(context, src, size, first, count, dst, threads);
}

sz_status sz_read_info(sz_context* context, const uint8_t* src, size_t size, sz_info* info,
                       size_t info_size) {
  return guarded(context, [&] {
    require(src != nullptr, "sz: src: is NULL");
    require(info != nullptr, "sz: info: is NULL");
    require(info_size >= kFirstInfoSize && info_size <= sizeof(sz_info),
            "sz: info_size: is none of sz_info; pass sizeof(sz_info)");
    sz_info result = {};
    fill_info(sz::read_info(src, size), &result);
    std::memcpy(info, &result, info_size);
  });
}

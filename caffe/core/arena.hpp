// The one caching allocator of the core: best fit with coalescing in one growing range of addresses.
//
// Blocks that are given back are reused without page faults; trim() returns what is free to the
// operating system. Not a general malloc: blocks are tens of bytes to gigabytes, few thousands live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "caffe/core/memory_tracker.hpp"

namespace caffe {

class Arena;

// A piece of arena memory; goes back to the arena when its last owner lets go.
class Block {
 public:
  Block(Arena& arena, std::byte* data, size_t bytes, MemoryKind kind);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }  // as asked for
  MemoryKind kind() const { return kind_; }
  void set_kind(MemoryKind kind);
  // Keeps the first `bytes` bytes, returns the rest to the arena at once.
  void shrink(size_t bytes);

  // Views handed out to Python that keep this block alive.
  void pin() { ++pins_; }
  void unpin() { --pins_; }
  bool pinned() const { return pins_ > 0; }

 private:
  Arena& arena_;
  std::byte* data_;
  size_t bytes_;
  MemoryKind kind_;
  int pins_ = 0;  // changed with the GIL held
};

class Arena {
 public:
  static constexpr size_t kAlignment = 64;  // a cache line, and what AVX-512 loads like

  // Reserves addresses only; memory is used when blocks are written.
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Contents are undefined. Throws caffe::Error that names the size and the peak when it cannot: the
  // machine's memory is the limit, since pages beyond it would end the process as they are written.
  std::shared_ptr<Block> allocate(size_t bytes, MemoryKind kind);
  // Gives memory that is free to the operating system; returns the bytes given back.
  size_t trim();

  // Bytes between the range's start and the end of the highest block ever handed out since trim().
  size_t extent() const;
  MemoryTracker& tracker() { return tracker_; }

  // The arena of this process. Blocks may outlive static destruction (Python keeps views), so it is
  // never destroyed.
  static Arena& instance();

 private:
  friend class Block;
  using FreeBySize = std::set<std::pair<size_t, std::byte*>>;
  using FreeByAddress = std::map<std::byte*, size_t>;

  void release(std::byte* data, size_t bytes);
  [[noreturn]] void fail(size_t bytes, MemoryKind kind) const;
  void insert_free(std::byte* data, size_t bytes);
  void erase_free(FreeByAddress::iterator position);

  mutable std::mutex mutex_;
  std::byte* base_ = nullptr;
  size_t reserved_ = 0;
  int64_t limit_ = 0;         // live bytes of all kinds
  std::byte* top_ = nullptr;  // everything from here on was never handed out, or was trimmed
  FreeBySize by_size_;
  FreeByAddress by_address_;
  MemoryTracker tracker_;
};

}  // namespace caffe

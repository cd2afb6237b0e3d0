#include "caffe/core/arena.hpp"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>

#include "caffe/core/error.hpp"

namespace caffe {
namespace {

constexpr size_t kPage = size_t{2} << 20;  // a huge page: the unit worth giving back

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// The machine's memory and swap, or what a container's limit leaves of it; in bytes.
int64_t machine_memory() {
  struct sysinfo info = {};
  int64_t least = std::numeric_limits<int64_t>::max();
  if (sysinfo(&info) == 0) {
    least = static_cast<int64_t>(info.totalram + info.totalswap) * info.mem_unit;
  }
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t limit = 0;  // the file says "max" where there is none
    if (std::ifstream(path) >> limit && limit > 0) least = std::min(least, limit);
  }
  return least;
}

}  // namespace

Block::Block(Arena& arena, std::byte* data, size_t bytes, MemoryKind kind)
    : arena_(arena), data_(data), bytes_(bytes), kind_(kind) {
  arena_.tracker().add(kind_, static_cast<int64_t>(bytes_));
}

Block::~Block() {
  arena_.tracker().remove(kind_, static_cast<int64_t>(bytes_));
  arena_.release(data_, round_up(bytes_, Arena::kAlignment));
}

void Block::set_kind(MemoryKind kind) {
  if (kind == kind_) return;
  arena_.tracker().move(kind_, kind, static_cast<int64_t>(bytes_));
  kind_ = kind;
}

void Block::shrink(size_t bytes) {
  if (bytes >= bytes_) return;
  const size_t keep = round_up(std::max(bytes, size_t{1}), Arena::kAlignment);
  const size_t had = round_up(bytes_, Arena::kAlignment);
  arena_.tracker().remove(kind_, static_cast<int64_t>(bytes_ - bytes));
  bytes_ = bytes;
  if (keep < had) arena_.release(data_ + keep, had - keep);
}

Arena::Arena() : limit_(machine_memory()) {
  // Addresses cost nothing; a limit on them (ulimit -v) is met by asking for less.
  for (reserved_ = size_t{1} << 42; reserved_ >= (size_t{1} << 30); reserved_ /= 2) {
    void* range = mmap(nullptr, reserved_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    base_ = static_cast<std::byte*>(range);
    top_ = base_;
    return;
  }
  throw Error("cannot reserve 1 GiB of addresses; raise the limit on virtual memory (ulimit -v)");
}

Arena::~Arena() {
  munmap(base_, reserved_);
}

std::shared_ptr<Block> Arena::allocate(size_t bytes, MemoryKind kind) {
  const BytesByKind live = tracker_.live();
  const int64_t used = std::accumulate(live.begin(), live.end(), int64_t{0});
  if (bytes > static_cast<size_t>(std::max<int64_t>(limit_ - used, 0))) fail(bytes, kind);
  const size_t rounded = round_up(std::max(bytes, size_t{1}), kAlignment);
  std::byte* data = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto fit = by_size_.lower_bound({rounded, nullptr});
    if (fit != by_size_.end()) {
      const auto [size, address] = *fit;
      erase_free(by_address_.find(address));
      if (size > rounded) insert_free(address + rounded, size - rounded);
      data = address;
    } else {
      // A free block that ends at the top is extended rather than left behind.
      std::byte* start = top_;
      if (!by_address_.empty()) {
        const auto last = std::prev(by_address_.end());
        if (last->first + last->second == top_) {
          start = last->first;
          erase_free(last);
        }
      }
      if (rounded > static_cast<size_t>(base_ + reserved_ - start)) {
        if (start < top_) insert_free(start, static_cast<size_t>(top_ - start));
        fail(bytes, kind);
      }
      data = start;
      top_ = start + rounded;
    }
  }
  return std::make_shared<Block>(*this, data, std::max(bytes, size_t{1}), kind);
}

void Arena::fail(size_t bytes, MemoryKind kind) const {
  throw Error(message("out of memory: wanted ", bytes, " bytes of ", memory_kind_name(kind),
                      ", peak so far ", tracker_.peak().total,
                      " bytes; a smaller batch or a looser error bound needs less"));
}

void Arena::release(std::byte* data, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto next = by_address_.lower_bound(data);
  if (next != by_address_.end() && next->first == data + bytes) {
    bytes += next->second;
    erase_free(next++);
  }
  if (next != by_address_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == data) {
      data = before->first;
      bytes += before->second;
      erase_free(before);
    }
  }
  insert_free(data, bytes);
}

void Arena::insert_free(std::byte* data, size_t bytes) {
  by_size_.insert({bytes, data});
  by_address_.insert({data, bytes});
}

void Arena::erase_free(FreeByAddress::iterator position) {
  by_size_.erase({position->second, position->first});
  by_address_.erase(position);
}

size_t Arena::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t given_back = 0;
  for (const auto& [address, bytes] : by_address_) {
    const size_t offset = static_cast<size_t>(address - base_);
    const size_t first = round_up(offset, kPage);
    const size_t last = (offset + bytes) / kPage * kPage;
    if (first >= last) continue;
    if (madvise(base_ + first, last - first, MADV_DONTNEED) == 0) given_back += last - first;
  }
  if (!by_address_.empty()) {
    const auto last = std::prev(by_address_.end());
    if (last->first + last->second == top_) {
      top_ = last->first;
      erase_free(last);
    }
  }
  return given_back;
}

size_t Arena::extent() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<size_t>(top_ - base_);
}

Arena& Arena::instance() {
  static Arena* const arena = new Arena;
  return *arena;
}

}  // namespace caffe

// Counts live bytes by what they are for, and remembers the peak and where it was.
//
// Counts what the arena hands out, not what the operating system sees; the benchmarks compare both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace caffe {

enum class MemoryKind : uint8_t {
  Parameters,
  ParameterGradients,
  History,
  RawActivations,
  StoredActivations,
  Gradients,
  Workspace,
  Data,
  HeldByPython,
};
constexpr size_t kMemoryKinds = 9;
const char* memory_kind_name(MemoryKind kind);

using BytesByKind = std::array<int64_t, kMemoryKinds>;

struct MemoryPeak {
  int64_t total = 0;      // bytes of all kinds but parameters, their gradients and history
  BytesByKind by_kind{};  // what was live at that moment
  std::string layer;      // the scope that was set then
};

class MemoryTracker {
 public:
  void add(MemoryKind kind, int64_t bytes);
  void remove(MemoryKind kind, int64_t bytes);
  void move(MemoryKind from, MemoryKind to, int64_t bytes);

  // The layer (or other work) that allocations from now on are for.
  void set_scope(const std::string& layer);
  // Forgets the peak: it starts again from what is live now.
  void reset_peak();

  // A pass over the net starts; room() is what it may yet take without needing more than it did so
  // far. Of the kinds that the peak counts.
  void start_pass();
  int64_t room() const;

  BytesByKind live() const;
  MemoryPeak peak() const;

 private:
  void note_peak();

  mutable std::mutex mutex_;
  BytesByKind live_{};
  int64_t live_total_ = 0;  // as MemoryPeak::total counts
  int64_t most_of_pass_ = 0;
  MemoryPeak peak_;
  std::string scope_;
};

}  // namespace caffe

#include "caffe/core/memory_tracker.hpp"

#include <algorithm>

namespace caffe {
namespace {

constexpr const char* kNames[kMemoryKinds] = {
    "parameters", "parameter_gradients", "history", "raw_activations", "stored_activations",
    "gradients",  "workspace",           "data",    "held_by_python",
};

// Parameters, their gradients and history are the same in every mode: the peak leaves them out.
bool counts_for_peak(MemoryKind kind) {
  return kind > MemoryKind::History;
}

}  // namespace

const char* memory_kind_name(MemoryKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

void MemoryTracker::note_peak() {
  most_of_pass_ = std::max(most_of_pass_, live_total_);
  if (live_total_ <= peak_.total) return;
  peak_.total = live_total_;
  peak_.by_kind = live_;
  peak_.layer = scope_;
}

void MemoryTracker::add(MemoryKind kind, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  live_[static_cast<size_t>(kind)] += bytes;
  if (!counts_for_peak(kind)) return;
  live_total_ += bytes;
  note_peak();
}

void MemoryTracker::remove(MemoryKind kind, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  live_[static_cast<size_t>(kind)] -= bytes;
  if (counts_for_peak(kind)) live_total_ -= bytes;
}

void MemoryTracker::move(MemoryKind from, MemoryKind to, int64_t bytes) {
  remove(from, bytes);
  add(to, bytes);
}

void MemoryTracker::set_scope(const std::string& layer) {
  std::lock_guard<std::mutex> lock(mutex_);
  scope_ = layer;
}

void MemoryTracker::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  peak_ = {live_total_, live_, scope_};
}

void MemoryTracker::start_pass() {
  std::lock_guard<std::mutex> lock(mutex_);
  most_of_pass_ = live_total_;
}

int64_t MemoryTracker::room() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return most_of_pass_ - live_total_;
}

BytesByKind MemoryTracker::live() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return live_;
}

MemoryPeak MemoryTracker::peak() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return peak_;
}

}  // namespace caffe

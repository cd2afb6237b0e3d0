#include "layout.hpp"

#include <algorithm>

namespace sz {
namespace {

// Arrays below have shorter lanes, so that threads have several chunks to share.
constexpr uint64_t kLargeArray = uint64_t{1} << 22;
constexpr uint32_t kShortSteps = kMaxSteps / 2;
constexpr int kDistanceWithoutRows =
    3;  // of pairs: the nearest codes that the last pair leaves out

uint32_t round_up(uint64_t value, uint32_t unit) {
  return static_cast<uint32_t>((value + unit - 1) / unit * unit);
}

}  // namespace

uint32_t Layout::unit() const {
  if (neighbourhood != kLeftAndUp) return 1;
  return rows > 0 && steps % (row * rows) == 0 ? row * rows : row;
}

int Layout::values_of(uint64_t chunk) const {
  return static_cast<int>(std::min(count - chunk * chunk_values(), chunk_values()));
}

Lattice Layout::lattice(int lane_steps) const {
  if (neighbourhood != kLeftAndUp) return {lane_steps, lane_steps, 0, neighbourhood == kLeft};
  const bool planes = rows > 0 && lane_steps % static_cast<int>(row * rows) == 0;
  return {lane_steps, static_cast<int>(row), planes ? static_cast<int>(rows) : 0, true};
}

PairLattice Layout::pairs_of(const Lattice& lattice) const {
  if (neighbourhood != kLeftAndUp) return {lattice.steps, kDistanceWithoutRows, lattice.steps};
  const int plane = lattice.period > 0 ? lattice.row * lattice.period : lattice.steps;
  return {lattice.steps, lattice.row, plane};
}

// A chunk that is not full shares its values among all lanes, in whole rows.
Lattice Layout::lattice_of(int values) const {
  const uint32_t whole = neighbourhood == kLeftAndUp ? row : 1;
  const auto each = static_cast<uint64_t>(values + kLanes - 1) / kLanes;
  return lattice(static_cast<int>(std::min(round_up(each, whole), steps)));
}

Lanes Layout::lanes_of(int values) const {
  const int lane_steps = lattice_of(values).steps;
  return {values / lane_steps, values % lane_steps};
}

Layout make_layout(uint64_t count, uint64_t row, uint64_t rows, Neighbourhood neighbourhood) {
  const uint32_t most = count < kLargeArray ? kShortSteps : kMaxSteps;
  const bool has_rows = row > 1 && row <= most && count > row;
  const uint64_t plane = has_rows && rows > 1 && rows <= most ? row * rows : 0;
  Layout layout = {};
  layout.count = count;
  layout.neighbourhood = neighbourhood == kLeftAndUp && !has_rows ? kLeft : neighbourhood;
  layout.row = has_rows ? static_cast<uint32_t>(row) : 0;
  layout.rows = plane > 0 && plane <= most ? static_cast<uint32_t>(rows) : 0;
  layout.steps = most;
  if (layout.neighbourhood == kLeftAndUp) {
    const uint32_t unit = layout.rows > 0 ? layout.row * layout.rows : layout.row;
    layout.steps = most / unit * unit;
  }
  return layout;
}

}  // namespace sz

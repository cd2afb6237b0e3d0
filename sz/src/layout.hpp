// How the values of an array are cut into chunks and lanes (FORMAT.md, "Chunks and lanes").
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace sz {

// Which neighbours codes are predicted from.
enum Neighbourhood : uint8_t { kAlone = 0, kLeft = 1, kLeftAndUp = 2 };
constexpr int kNeighbourhoods = 3;

struct Layout {
  uint64_t count;  // values in the array
  uint32_t row;    // values in a row; 0: no rows
  uint32_t rows;   // in a plane; 0: unknown
  uint32_t steps;  // of a lane of a full chunk
  Neighbourhood neighbourhood;

  uint64_t chunk_values() const { return uint64_t{steps} * kLanes; }
  uint64_t chunks() const { return (count + chunk_values() - 1) / chunk_values(); }
  int values_of(uint64_t chunk) const;
  Lattice lattice_of(int values) const;
  Lanes lanes_of(int values) const;

  // Steps are a multiple of this, so that all lanes are at the same place of a row or plane.
  uint32_t unit() const;
  Lattice lattice(int lane_steps) const;
  // Without rows, the distance is 3.
  PairLattice pairs_of(const Lattice& lattice) const;
};

// row and rows may be 0: unknown.
Layout make_layout(uint64_t count, uint64_t row, uint64_t rows, Neighbourhood neighbourhood);

}  // namespace sz

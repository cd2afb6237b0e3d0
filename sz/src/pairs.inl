// Classes, planes and escapes of pairs, in portable C++. Included after lanes.inl, in the same way.

// Walks through the pairs of a lane: whether they are in the first row of a plane.
struct PlaneWalker {
  const PairLattice& lattice;
  int step;  // of the plane

  bool on_top() const { return step < lattice.distance; }
  void next() {
    step += 2;
    if (step >= lattice.plane) step -= lattice.plane;
  }
};

int class_of(int code, int least) {
  const int above = code - least;
  return above >= 0 && above < kOutside ? above : kOutside;
}

// Codes past the end of a lane are written as 0.
int second_code(const int16_t* codes, const PairLattice& lattice, const Lanes& lanes, int step,
                int lane) {
  const bool inside = step + 1 < lattice.steps && lane < active_lanes(lanes, step + 1);
  return inside ? codes[(step + 1) * kLanes + lane] : 0;
}

// Both classes, then the codes that have none.
void put_escaped(RawWriter* raw, int first, int second, int least) {
  const int a = class_of(first, least), b = class_of(second, least);
  if (b == kOutside) put_raw(raw, static_cast<uint16_t>(second), 16);
  if (a == kOutside) put_raw(raw, static_cast<uint16_t>(first), 16);
  put_raw(raw, static_cast<uint32_t>(a | b << 4), 8);
}

void get_escaped(RawReader* raw, int least, int* codes) {
  const uint32_t classes = get_raw(raw, 8);
  for (int i = 0; i < 2; i++) {
    const int c = classes >> (4 * i) & 15;
    codes[i] = c == kOutside ? static_cast<int16_t>(get_raw(raw, 16)) : least + c;
  }
}

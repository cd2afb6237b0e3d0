// Prediction, contexts and symbols of single codes in portable C++: the reference that the vector
// kernels equal. Included after lanes.inl, in the same way.

// Where the neighbours of a step are: kLanes codes each.
struct Neighbours {
  const int16_t* left;
  const int16_t* up;
  const int16_t* up_left;
  const int16_t* up_right;
};

const int16_t kNoCodes[kLanes] = {};

// Walks through the steps of a lattice in either direction.
struct Walker {
  const Lattice& lattice;
  int step, column, row;

  static Walker at_start(const Lattice& lattice) { return {lattice, 0, 0, 0}; }
  static Walker at_end(const Lattice& lattice) {
    return {lattice, lattice.steps - 1, lattice.row - 1, lattice.steps / lattice.row - 1};
  }
  void next() {
    step++;
    if (++column == lattice.row) {
      column = 0;
      row++;
    }
  }
  void previous() {
    step--;
    if (column-- == 0) {
      column = lattice.row - 1;
      row--;
    }
  }
  // At the sides of a row, what is missing is replaced by the code above.
  Neighbours neighbours(const int16_t* codes) const {
    if (!lattice.left) return {kNoCodes, kNoCodes, kNoCodes, kNoCodes};
    const int16_t* here = codes + step * kLanes;
    const bool top = row == 0 || (lattice.period > 0 && row % lattice.period == 0);
    if (top) return {column > 0 ? here - kLanes : kNoCodes, kNoCodes, kNoCodes, kNoCodes};
    const int16_t* up = here - lattice.row * kLanes;
    return {column > 0 ? here - kLanes : up, up, column > 0 ? up - kLanes : up,
            column + 1 < lattice.row ? up + kLanes : up};
  }
};

struct Context {
  int prediction;
  int index;
};

int magnitude(int x) {
  return x < 0 ? -x : x;
}

// The median of left, up and left + up - up_left (the predictor of LOCO-I: Weinberger, Seroussi
// and Sapiro, 2000), and a context from it and the differences nearby.
Context context_of(const Neighbours& n, int lane) {
  const int left = n.left[lane], up = n.up[lane], corner = n.up_left[lane];
  const int least = left < up ? left : up, most = left < up ? up : left;
  const int plane = left + up - corner;
  const int prediction = plane < least ? least : plane > most ? most : plane;
  const int activity =
      magnitude(left - corner) + magnitude(corner - up) + magnitude(up - n.up_right[lane]);
  int level = 0;
  for (int threshold : kThresholds) level += activity >= threshold;
  const int near = prediction < -kNearby ? -kNearby : prediction > kNearby ? kNearby : prediction;
  return {prediction, level * (2 * kNearby + 1) + near + kNearby};
}

// 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
uint32_t fold(int residual) {
  return residual < 0 ? -2 * residual - 1 : 2 * residual;
}

int unfold(uint32_t folded) {
  return static_cast<int>(folded >> 1) ^ -static_cast<int>(folded & 1);
}

// A symbol and the raw bits that go with it.
struct Symbol {
  int index;
  int raw_bits;
  uint32_t raw;
};

// Code 0 is symbol 0. Folded residuals from kDirect on have two symbols an octave: raw bits are what
// follows the first two.
Symbol symbol_of(int code, int prediction) {
  if (code == 0) return {0, 0, 0};
  const uint32_t folded = fold(code - prediction);
  if (folded < kDirect) return {1 + static_cast<int>(folded), 0, 0};
  const int exponent = 31 - __builtin_clz(folded);  // 5 to 15
  const int half = static_cast<int>(folded >> (exponent - 1) & 1);
  return {1 + kDirect + 2 * (exponent - 5) + half, exponent - 1,
          folded & ((1u << (exponent - 1)) - 1)};
}

Symbol escape_of(int code, int prediction) {
  return {kEscape, 16, code == 0 ? 0 : 1 + fold(code - prediction)};
}

// The code of a symbol; a malformed stream may give any.
int code_of(int symbol, int prediction, RawReader* raw) {
  if (symbol == 0) return 0;
  uint32_t folded = static_cast<uint32_t>(symbol - 1);
  if (symbol == kEscape) {
    folded = get_raw(raw, 16);
    if (folded-- == 0) return 0;
  } else if (symbol > kDirect) {
    const int octave = symbol - 1 - kDirect;
    const int bits = 4 + octave / 2;
    folded = static_cast<uint32_t>(2 + octave % 2) << bits | get_raw(raw, bits);
  }
  return static_cast<int16_t>(prediction + unfold(folded));
}

// The table's entry of a code. Writes its raw bits, or an escape where the table lacks the symbol.
uint32_t entry_of(int code, const Context& context, const uint32_t* symbols, RawWriter* raw) {
  const uint32_t* table = symbols + context.index * kAlphabet;
  Symbol symbol = symbol_of(code, context.prediction);
  if (table[symbol.index] == 0) symbol = escape_of(code, context.prediction);
  if (symbol.raw_bits > 0) put_raw(raw, symbol.raw, symbol.raw_bits);
  return table[symbol.index];
}

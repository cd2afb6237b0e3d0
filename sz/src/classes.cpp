#include "classes.hpp"

#include <algorithm>
#include <cstring>

#include "entropy.hpp"
#include "group.hpp"
#include "mask.hpp"

namespace sz {
namespace {

constexpr int kFewestGroups = 16;  // fewer are one class: more tables would not pay

// What a class costs besides the entropy of its bytes, in 1/256 bit.
constexpr uint64_t kClassCost = 256 * 8 * 60;
constexpr uint64_t kTableCost = 256 * 4;  // a symbol

uint64_t coded_size(const Histograms& h) {
  return entropy_size(h.mask) + entropy_size(h.symbols) + kClassCost +
         kTableCost * (used_symbols(h.mask) + used_symbols(h.symbols));
}

void add(const Histograms& from, Histograms* to) {
  for (int s = 0; s < 256; s++) {
    to->mask[s] += from.mask[s];
    to->symbols[s] += from.symbols[s];
  }
}

// --- ordering by class ---

// Copies masks and symbols by class, in the order of the groups within a class.
void order_by_class(const GroupInfo* groups, int count, Scratch* s, Classes* classes) {
  const int n = group_count(count);
  uint32_t masks = 0, symbols = 0, large = 0;
  for (int c = 0; c < kClasses; c++) {
    classes->mask[c] = masks;
    classes->symbols[c] = symbols;
    const uint8_t* from = s->symbols;
    const uint16_t* from_large = s->large_symbols;
    for (int g = 0; g < n; g++) {
      if (class_of(s->headers[g]) == c) {
        const size_t bytes = mask_bytes(group_size(g * kGroupValues, count));
        std::memcpy(s->class_mask + masks, s->mask + g * kGroupMask, bytes);
        std::memcpy(s->class_symbols + symbols, from, groups[g].symbols);
        std::memcpy(s->class_large + large, from_large, groups[g].large * sizeof(uint16_t));
        masks += static_cast<uint32_t>(bytes);
        symbols += groups[g].symbols;
        large += groups[g].large;
      }
      from += groups[g].symbols;
      from_large += groups[g].large;
    }
  }
  classes->mask[kClasses] = masks;
  classes->symbols[kClasses] = symbols;
}

void set_class(uint8_t* header, int c) {
  *header = static_cast<uint8_t>((*header & 63) | c << 6);
}

// Puts the groups into kClasses classes of equal size by level.
void sort_into_quantiles(const GroupInfo* groups, int n, uint8_t* headers) {
  uint64_t order[kChunkGroups];
  for (int g = 0; g < n; g++) order[g] = uint64_t{groups[g].level} << 16 | static_cast<uint64_t>(g);
  std::sort(order, order + n);
  for (int i = 0; i < n; i++) set_class(&headers[order[i] & 0xffff], i * kClasses / n);
}

// Merges neighbouring classes as long as that makes the whole smaller; new_class[c] is where c
// went. Returns how many are left.
int merge_classes(Histograms* classes, int* new_class) {
  int left = kClasses;
  uint64_t sizes[kClasses];
  for (int c = 0; c < kClasses; c++) {
    sizes[c] = coded_size(classes[c]);
    new_class[c] = c;
  }
  while (left > 1) {
    int best = -1;
    uint64_t best_size = 0;
    int64_t best_gain = 0;
    for (int c = 0; c + 1 < left; c++) {
      Histograms both = classes[c];
      add(classes[c + 1], &both);
      const uint64_t size = coded_size(both);
      const auto gain = static_cast<int64_t>(sizes[c] + sizes[c + 1]) - static_cast<int64_t>(size);
      if (gain <= best_gain) continue;
      best = c;
      best_gain = gain;
      best_size = size;
    }
    if (best < 0) break;
    add(classes[best + 1], &classes[best]);
    sizes[best] = best_size;
    for (int c = best + 1; c + 1 < left; c++) {
      classes[c] = classes[c + 1];
      sizes[c] = sizes[c + 1];
    }
    for (int c = 0; c < kClasses; c++) new_class[c] -= new_class[c] > best;
    left--;
    classes[left] = {};
  }
  return left;
}

void count_bytes(const Kernels& kernels, const Scratch& s, Classes* classes) {
  for (int c = 0; c < kClasses; c++) {
    const uint32_t mask = classes->mask[c], symbols = classes->symbols[c];
    kernels.histogram(s.class_mask + mask, classes->mask[c + 1] - mask, classes->counts[c].mask);
    kernels.histogram(s.class_symbols + symbols, classes->symbols[c + 1] - symbols,
                      classes->counts[c].symbols);
  }
}

}  // namespace

void classify(const Kernels& kernels, const GroupInfo* groups, int count, Scratch* scratch,
              Classes* classes) {
  const int n = group_count(count);
  const bool few = n < kFewestGroups;
  if (few) {
    for (int g = 0; g < n; g++) set_class(&scratch->headers[g], 0);
  } else {
    sort_into_quantiles(groups, n, scratch->headers);
  }
  order_by_class(groups, count, scratch, classes);
  count_bytes(kernels, *scratch, classes);
  int new_class[kClasses];
  if (few || merge_classes(classes->counts, new_class) == kClasses) return;
  for (int g = 0; g < n; g++) {
    set_class(&scratch->headers[g], new_class[class_of(scratch->headers[g])]);
  }
  order_by_class(groups, count, scratch, classes);
}

}  // namespace sz

// Chooses the kernels at run time. A new instruction set is one more file and one more line here.
#pragma once

#include "kernels.hpp"
#include "sz/sz.hpp"

namespace sz {

// Throws ArgumentError if this set is not supported here.
const Kernels& kernels_for(Isa isa);

}  // namespace sz

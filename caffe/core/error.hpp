// Exceptions of the C++ core, and the one way to throw them with a message built from parts.
//
// ConfigError: the user asked for something that cannot be (shapes, options); Python sees ValueError.
// Error: everything else that can go wrong while running; Python sees caffe.Error, a RuntimeError.
// Messages name quantities and what was expected; Python puts the layer's name and type in front.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace caffe {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ConfigError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// The parts, written one after the other.
template <typename... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

// Throws ConfigError with the parts as its message unless `condition` holds.
template <typename... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) throw ConfigError(message(parts...));
}

}  // namespace caffe

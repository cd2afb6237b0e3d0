#include "context.hpp"

namespace sz {

Context::Context() : impl_(new Impl) {}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

}  // namespace sz

#pragma once

#include <cstddef>
#include <new>

namespace lockstep {

/// What `new` throws in this program; it knows how many bytes were requested.
class FailedAllocation : public std::bad_alloc {
  public:
    explicit FailedAllocation(std::size_t bytes) : bytes_(bytes) {}
    char const* what() const noexcept override { return "an allocation failed"; }
    std::size_t bytes() const noexcept { return bytes_; }

  private:
    std::size_t bytes_;
};

} // namespace lockstep

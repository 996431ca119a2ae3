#pragma once

#include <unistd.h>
#include <utility>

namespace lockstep {

/// A file descriptor that closes itself; -1 for none.
class Descriptor {
  public:
    explicit Descriptor(int value) noexcept : value_(value) {}
    Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor() {
        if (value_ >= 0) {
            ::close(value_);
        }
    }

    int get() const noexcept { return value_; }

  private:
    int value_;
};

} // namespace lockstep

#pragma once

#include <unistd.h>
#include <utility>

namespace lockstep {

/// A file descriptor that closes itself; -1 for none.
class Descriptor {
  public:
    Descriptor() noexcept = default;
    explicit Descriptor(int value) noexcept : value_(value) {}
    Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    ~Descriptor() {
        if (value_ >= 0) {
            ::close(value_);
        }
    }

    [[nodiscard]] int get() const noexcept { return value_; }
    [[nodiscard]] bool is_open() const noexcept { return value_ >= 0; }

  private:
    int value_ = -1;
};

} // namespace lockstep

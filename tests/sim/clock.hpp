#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::sim {

/// How much of each stream's work happened before a moment: a vector clock (Mattern 1989).
class Clock {
  public:
    bool has(std::size_t stream, std::uint64_t epoch) const {
        return epoch == 0 || (stream < epochs_.size() && epochs_[stream] >= epoch);
    }
    void set(std::size_t stream, std::uint64_t epoch) {
        epochs_.resize(std::max(epochs_.size(), stream + 1), 0);
        epochs_[stream] = epoch;
    }
    void join(Clock const& other) {
        epochs_.resize(std::max(epochs_.size(), other.epochs_.size()), 0);
        for (std::size_t i = 0; i < other.epochs_.size(); ++i) {
            epochs_[i] = std::max(epochs_[i], other.epochs_[i]);
        }
    }

  private:
    std::vector<std::uint64_t> epochs_; ///< by stream
};

} // namespace lockstep::sim

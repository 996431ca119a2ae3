#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arrivals.hpp"

namespace lockstep::comm {

/// What the ranks of a host share, cut out of one block of zeroed memory; every array begins on a
/// page.
class HostMemory {
  public:
    struct Form {
        int ranks = 1;
        std::int64_t size = 0; ///< elements of an arena
        std::int64_t reduction_blocks = 0;
        std::size_t step_sums = 0;
        std::size_t payload = 0;
        bool private_parameters = false;

        std::size_t bytes() const;
    };

    /// `owner` keeps the block at `data` alive.
    HostMemory(Form const& form, std::byte* data, std::shared_ptr<void const> owner);

    /// A copy of it keeps the memory alive.
    std::shared_ptr<void const> const& owner() const { return owner_; }
    Arrivals::Slot* slots() const { return arrays_.slots; }
    /// One array for even and one for odd steps: a fast rank may write the next step's sums while a
    /// slow one still reads.
    double* step_sums(int rank, bool odd) const {
        return arrays_.step_sums +
               static_cast<std::size_t>(2 * rank + (odd ? 1 : 0)) * form_.step_sums;
    }
    std::byte* payload(bool odd) const { return arrays_.payload + (odd ? form_.payload : 0); }
    double* squares() const { return arrays_.squares; }
    float* gradients(int rank) const { return arrays_.gradients + rank * form_.size; }
    /// Where to store the sum that a rank has made of elements from `first` on: in its gradients,
    /// or in every rank's where each updates parameters of its own.
    std::vector<float*> destinations(int rank, std::int64_t first) const;
    float* parameters(int rank) const {
        return arrays_.parameters + (form_.private_parameters ? rank * form_.size : 0);
    }

  private:
    struct Arrays {
        Arrivals::Slot* slots = nullptr;
        double* step_sums = nullptr;
        std::byte* payload = nullptr;
        double* squares = nullptr;
        float* gradients = nullptr;
        float* parameters = nullptr;

        /// Returns the bytes that they take; null where there is no block.
        std::size_t cut(Form const& form, std::byte* block);
    };

    Form form_;
    std::shared_ptr<void const> owner_;
    Arrays arrays_;
};

} // namespace lockstep::comm

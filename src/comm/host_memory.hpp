#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arrivals.hpp"
#include "loan.hpp"

namespace lockstep::comm {

class SharedBlock;

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
        /// Pages of gradients, and of parameters, come when `populate` asks for them.
        bool sparse_gradients = false;
        bool sparse_parameters = false;
        int buckets = 0; ///< that are lent; 0: none

        std::size_t bytes() const;
        std::size_t kept_bytes() const; ///< that have their pages from the beginning
    };

    /// `block` has the form's size.
    HostMemory(Form const& form, std::shared_ptr<SharedBlock const> block);

    /// A copy of it keeps the memory alive.
    std::shared_ptr<SharedBlock const> const& block() const { return block_; }
    /// Gives these values pages, with zeros where they had none.
    ///
    /// Throws  Error 69 when the host has no memory for them
    void populate(float const* values, std::int64_t count) const;
    /// Takes the pages of these values away from all ranks.
    void discard(float* values, std::int64_t count) const noexcept;
    /// Gives this rank zeros of its own instead of the parameters, after an error.
    void replace_parameters() const noexcept;
    Arrivals::Slot* slots() const { return arrays_.slots; }
    /// The counters of buckets whose gradients a rank does not read any more.
    Arrivals::Slot* done_slots() const { return arrays_.slots + form_.ranks; }
    Loan* loans() const { return arrays_.loans; } ///< [buckets]
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
        Loan* loans = nullptr;
        double* step_sums = nullptr;
        std::byte* payload = nullptr;
        double* squares = nullptr;
        float* gradients = nullptr;
        float* parameters = nullptr;

        std::size_t kept = 0;  ///< bytes before those that come later
        std::size_t bytes = 0; ///< of all

        /// Without a block, null, it only counts.
        Arrays(Form const& form, std::byte* block);
    };

    Form form_;
    std::shared_ptr<SharedBlock const> block_;
    Arrays arrays_;
};

} // namespace lockstep::comm

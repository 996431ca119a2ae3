#pragma once

#include "comm/exchange.hpp"

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <vector>

#include "sparse_array.hpp"

namespace lockstep::train {

/// The parameters that a rank has on its device of an exchange in host memory: always its own
/// shards, and those of other ranks while they are lent. They are copied on a stream of their own,
/// for which the computing one waits when it uses them, so that the next bucket's copy hides behind
/// the operators of this one. Memory is taken away when the device has done what used it.
class DeviceLoans {
  public:
    /// `host` outlives it; its parameters have been written before any are lent.
    DeviceLoans(comm::Exchange& host, torch::Device device);

    /// All parameters, [size], of which only those of own shards and lent ones have memory.
    torch::Tensor const& parameters() const noexcept { return array_.values(); }

    /// Lends bucket `index` to what runs on the current stream from now on, unless it is lent.
    ///
    /// Throws  Error 76 naming a rank that does not come; c10::OutOfMemoryError
    void lend(int index);
    /// Throws the error of a call of `lend`.
    void require() const;
    /// Begins to fetch it, where that need not wait.
    void ask(int index);
    /// The current stream has been given the last work that uses it.
    void give_back(int index);
    /// Gives all back, waits for what uses them, and takes their memory away: the host's values
    /// change.
    void forget();

  private:
    enum class Phase : std::uint8_t {
        absent,
        coming,  ///< the copy is on its way
        lent,    ///< the computing stream has waited for it
        leaving, ///< given back, while operators may still read it
    };
    struct Loan {
        Phase phase = Phase::absent;
        std::optional<c10::Event> copied; ///< while it is coming
    };
    struct Leaving {
        int index = 0;
        c10::Event done;
    };
    /// Pinned memory for one bucket on its way.
    struct Room {
        torch::Tensor pinned;
        std::optional<c10::Event> left; ///< none: nothing has left yet
    };

    Loan& loan(int index) { return loans_[static_cast<std::size_t>(index)]; }
    std::array<Range, 2> foreign(int index) const;
    c10::Stream current() const { return streams_.getStream(device_); }
    c10::Event event_of(c10::Stream stream) const;
    void fetch(int index);
    torch::Tensor free_room();
    void join(Loan& loan) const;
    void recall(int index);
    void reap(std::size_t max);

    comm::Exchange& host_;
    torch::Device device_;
    c10::impl::VirtualGuardImpl streams_; ///< of the device's kind
    c10::Stream copies_;                  ///< on which buckets come
    torch::Tensor host_parameters_;
    SparseArray array_;
    std::vector<Loan> loans_; ///< by bucket
    std::deque<Leaving> leaving_;
    std::array<Room, 2> rooms_;
    std::size_t next_room_ = 0;
    std::exception_ptr failure_;
};

} // namespace lockstep::train

#pragma once

#include "arena/arena.hpp"
#include "base/clock.hpp"
#include "comm/exchange.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace c10 {
struct IValue;
}

namespace lockstep::train {

/// Lets a forward begin while parameters are still on their way: each operator that reads some
/// waits for them first. LibTorch tells of every operator before it runs, with its tensors, so that
/// it does not matter in which order layers run, and none can be forgotten; while nothing is on its
/// way, it is not asked to. Between operators the exchange makes progress.
///
/// What reads parameters past LibTorch's operators, or on other threads, does not run behind it;
/// own kernels announce themselves as operators do (program/own_kernels.hpp).
class ParameterGate {
  public:
    /// What it is given outlives it; the parameters are on the CPU.
    ///
    /// Not collective
    ParameterGate(comm::Exchange& exchange, Arena const& arena, comm::Communicator const& world);
    ParameterGate(ParameterGate const&) = delete;
    ParameterGate& operator=(ParameterGate const&) = delete;
    ~ParameterGate() = default;

    /// Calls `forward`, whose operators wait for the parameters that they read. At its end all
    /// parameters are there.
    ///
    /// Throws   what `forward` throws; Error 76 naming a rank that does not come, after a forward
    ///          whose result is worth nothing
    /// Returns  what `forward` returns
    template <class Forward>
    auto open(Forward&& forward) {
        if (exchange_.is_whole()) {
            return std::forward<Forward>(forward)();
        }
        try {
            auto result = [&] {
                Watch const watch(*this);
                return std::forward<Forward>(forward)();
            }();
            close();
            return result;
        } catch (...) {
            throw_failure(); // of which this one may be a consequence
            throw;
        }
    }

    /// What LibTorch calls before an operator: waits for what `inputs` need. An error comes out of
    /// `open`.
    void pass(std::span<c10::IValue const> inputs) noexcept;

    /// Seconds of waits since the last call.
    double take_waited() noexcept { return std::exchange(waited_s_, 0); }

  private:
    /// While it exists, LibTorch tells the gate of this thread's operators.
    class Watch {
      public:
        explicit Watch(ParameterGate& gate);
        Watch(Watch const&) = delete;
        Watch& operator=(Watch const&) = delete;
        ~Watch();

      private:
        std::uint64_t handle_;
    };

    int needed(c10::IValue const& value) const;
    int needed(torch::Tensor const& tensor) const;
    template <class Action>
    void wait(int bucket, Action const& action);
    void close();
    void throw_failure();

    comm::Exchange& exchange_;
    comm::Communicator const& world_;
    void const* base_;                 ///< of the parameters
    std::vector<std::int64_t> begins_; ///< of each bucket, in elements
    int arrived_ = 0;                  ///< buckets, as the exchange counts them, when last looked
    Stopwatch since_looked_;
    double waited_s_ = 0;
    std::exception_ptr failure_; ///< LibTorch lets no error out of what it tells of an operator
};

} // namespace lockstep::train

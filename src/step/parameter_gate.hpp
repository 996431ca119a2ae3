#pragma once

#include "arena/arena.hpp"
#include "base/clock.hpp"
#include "comm/exchange.hpp"
#include "lockstep/comm/communicator.hpp"
#include "step/lent_buckets.hpp"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
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
/// Where the exchange lends parameters, each operator of forward and of backward has those that it
/// reads lent while it runs, or while a device has it under way. The backward of a device runs on a
/// thread of LibTorch.
///
/// What reads parameters past LibTorch's operators, or on other threads, does not run behind it;
/// own kernels announce themselves as operators do (program/own_kernels.hpp).
class ParameterGate {
  public:
    /// What it is given outlives it; parameters that are not lent are on the CPU.
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
        if (!lent_ && exchange_.is_whole()) {
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

    /// The same for a backward, which finds all parameters there unless they are lent.
    template <class Backward>
    void open_backward(Backward&& backward) {
        if (!lent_) {
            std::forward<Backward>(backward)();
            return;
        }
        open([&] {
            std::forward<Backward>(backward)();
            return true;
        });
    }
    /// A step begins; all that was lent has been given back.
    void begin_step() noexcept {
        if (lent_) {
            lent_->forget();
        }
    }

    /// What LibTorch calls before an operator: waits for what `inputs` need. An error comes out of
    /// `open`.
    void pass(std::span<c10::IValue const> inputs) noexcept;
    /// The same where parameters are lent.
    ///
    /// Returns  the buckets that the operator uses, for `passed`
    std::vector<int> lend(std::span<c10::IValue const> inputs) noexcept;
    void passed(std::span<int const> buckets) noexcept;
    bool lends() const noexcept { return lent_.has_value(); }

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
        c10::DebugInfoGuard guard_;
        std::uint64_t handle_;
    };

    bool is_parameter(torch::Tensor const& tensor) const;
    int bucket_of(std::int64_t element) const;
    int needed(c10::IValue const& value) const;
    int needed(torch::Tensor const& tensor) const;
    void find_used(c10::IValue const& value, std::vector<int>& buckets) const;
    template <class Action>
    void wait(int bucket, Action const& action);
    void close();
    void throw_failure();

    comm::Exchange& exchange_;
    comm::Communicator const& world_;
    void const* base_;                 ///< of the parameters
    std::vector<std::int64_t> begins_; ///< of each bucket, in elements
    std::optional<LentBuckets> lent_;
    int arrived_ = 0; ///< buckets, as the exchange counts them, when last looked
    Stopwatch since_looked_;
    double waited_s_ = 0;
    std::mutex mutex_;           ///< of what is lent
    std::exception_ptr failure_; ///< LibTorch lets no error out of what it tells of an operator
};

} // namespace lockstep::train

#include "thread_replica_sums.hpp"

#include "base/awake_clock.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::train {

ThreadReplicaSums::ThreadReplicaSums(comm::TreeNode own, int replicas, AskOthers ask_others,
                                     double timeout_seconds)
    : own_(own), replicas_(replicas), ask_others_(std::move(ask_others)),
      timeout_(timeout_seconds) {}

void ThreadReplicaSums::sum(int replica, std::span<double> values) {
    auto const failed = [] {
        return Error(ExitCode::rank_lost,
                     {"a layer that needs all replicas, such as synchronised batch norm, has run "
                      "on only some of them",
                      "a replica has failed, or runs different layers than the others",
                      "Look for an earlier message of a replica that failed, or change the model "
                      "so that all replicas run the same layers"});
    };
    std::unique_lock lock(mutex_);
    if (abandoned_) {
        throw failed();
    }
    if (arrived_ == 0) {
        rows_.assign(static_cast<std::size_t>(replicas_) * values.size(), 0);
    }
    auto const width = rows_.size() / static_cast<std::size_t>(replicas_);
    if (width != values.size()) {
        throw failed();
    }
    std::copy(values.begin(), values.end(),
              rows_.begin() +
                  static_cast<std::ptrdiff_t>(static_cast<std::size_t>(replica) * width));
    auto const round = round_;
    if (++arrived_ == own_.count) {
        if (ask_others_ && own_.count < replicas_) {
            ask_others_(rows_);
        } else {
            // Sums over processes make +0 of -0; on one, nothing else may come out.
            std::transform(rows_.begin(), rows_.end(), rows_.begin(),
                           [](double value) { return value + 0.0; });
        }
        comm::sum_in_tree_order(
            {0, replicas_}, [](comm::TreeNode) { return false; },
            [&](int into, int from) {
                auto* const sum = rows_.data() + static_cast<std::size_t>(into) * width;
                auto const* const part = rows_.data() + static_cast<std::size_t>(from) * width;
                std::transform(sum, sum + width, part, sum, std::plus<>());
            });
        sum_.assign(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(width));
        arrived_ = 0;
        ++round_;
        changed_.notify_all();
    } else {
        AwakeClock clock;
        std::chrono::duration<double> const look(AwakeClock::look_every_s);
        while (!changed_.wait_for(lock, look, [&] { return round_ != round || abandoned_; })) {
            if (clock.seconds() > timeout_.count()) {
                throw failed();
            }
        }
        if (round_ == round) {
            throw failed();
        }
    }
    // Nobody can begin the next round's sum before this replica has come to it.
    std::copy(sum_.begin(), sum_.end(), values.begin());
}

void ThreadReplicaSums::abandon() {
    std::lock_guard const lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
}

} // namespace lockstep::train

#include "comm/wire.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "pending.hpp"

namespace lockstep::comm {

namespace {

/// Messages between threads need nobody's call to move, and hundreds of threads share a core.
constexpr double longest_sleep_s = 2e-3;

/// A message that is awaited.
struct Receive {
    std::span<std::byte> into;
    std::atomic<bool> done = false;
};

using Letter = std::vector<std::byte>;

void deliver(std::span<std::byte const> bytes, Receive& to) {
    if (bytes.size() != to.into.size()) {
        throw Error(ExitCode::software,
                    {"a message does not have the expected length",
                     "two ranks follow different schedules", "This is a bug; please report it"});
    }
    std::copy(bytes.begin(), bytes.end(), to.into.begin());
    to.done = true;
}

/// What threads have sent each other and await of each other, and what they do together. As in MPI,
/// messages are matched in the order in which they were sent and awaited.
class Office {
  public:
    explicit Office(int ranks) : ranks_(ranks) {}

    int ranks() const noexcept { return ranks_; }

    void send(int from, int to, int tag, std::span<std::byte const> bytes) {
        std::lock_guard const lock(mutex_);
        auto& box = boxes_[{from, to, tag}];
        while (!box.receives.empty()) {
            auto const receive = box.receives.front().lock();
            box.receives.pop_front();
            if (receive) { // nobody has given it up
                deliver(bytes, *receive);
                return;
            }
        }
        box.letters.emplace_back(bytes.begin(), bytes.end());
    }
    void receive(int from, int to, int tag, std::shared_ptr<Receive> const& receive) {
        std::lock_guard const lock(mutex_);
        auto& box = boxes_[{from, to, tag}];
        if (box.letters.empty()) {
            box.receives.push_back(receive);
            return;
        }
        deliver(box.letters.front(), *receive);
        box.letters.pop_front();
    }

    /// The smallest value of all ranks is delivered to `receive` of each, when all have come.
    void minimum(double value, std::shared_ptr<Receive> const& receive) {
        std::lock_guard const lock(mutex_);
        // A rank begins the next one only after all have joined this one.
        smallest_ = smallest_receives_.empty() ? value : std::min(smallest_, value);
        smallest_receives_.push_back(receive);
        if (std::ssize(smallest_receives_) < ranks_) {
            return;
        }
        for (auto const& each : smallest_receives_) {
            if (auto const waiting = each.lock()) {
                deliver(std::as_bytes(std::span(&smallest_, 1)), *waiting);
            }
        }
        smallest_receives_.clear();
    }

    /// Runs `join` of all ranks, one after the other, then `leave` of all.
    template <class Join, class Leave>
    void together(Join const& join, Leave const& leave) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return leaving_ == 0; });
        join(common_, joined_ == 0);
        if (++joined_ == ranks_) {
            leaving_ = ranks_;
            joined_ = 0;
            wake_.notify_all();
        } else {
            wake_.wait(lock, [&] { return leaving_ > 0; });
        }
        leave(common_);
        if (--leaving_ == 0) {
            wake_.notify_all();
        }
    }

  private:
    struct Box {
        std::deque<Letter> letters;
        std::deque<std::weak_ptr<Receive>> receives;
    };

    int ranks_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::map<std::tuple<int, int, int>, Box> boxes_; ///< by sender, receiver, tag
    std::vector<std::byte> common_;
    std::vector<std::weak_ptr<Receive>> smallest_receives_; ///< of ranks that have come
    double smallest_ = 0;
    int joined_ = 0;
    int leaving_ = 0;
};

class ThreadFlight : public Flight {
  public:
    ThreadFlight(Office& office, int rank) : office_(office), rank_(rank) {}

    void send(int to, int tag, std::span<std::byte const> bytes) override {
        office_.send(rank_, to, tag, bytes);
    }
    void receive(int from, int tag, std::span<std::byte> bytes) override {
        office_.receive(from, rank_, tag, open_.emplace_back(std::make_shared<Receive>(bytes)));
    }
    void broadcast(std::span<std::byte> bytes) override {
        constexpr int tag = -1; // of no other message
        if (rank_ > 0) {
            receive(0, tag, bytes);
            return;
        }
        for (int to = 1; to < office_.ranks(); ++to) {
            send(to, tag, bytes);
        }
    }
    void minimum(double& value) override {
        auto const& receive = open_.emplace_back(
            std::make_shared<Receive>(std::as_writable_bytes(std::span(&value, 1))));
        office_.minimum(value, receive);
    }
    bool done() override {
        return std::all_of(open_.begin(), open_.end(),
                           [](auto const& each) { return each->done.load(); });
    }
    void wait(double timeout_seconds) override {
        Backoff backoff(timeout_seconds, "messages from other threads", longest_sleep_s);
        while (!done()) {
            backoff.pause();
        }
    }

  private:
    Office& office_;
    int rank_;
    std::vector<std::shared_ptr<Receive>> open_;
};

class ThreadWire : public Wire {
  public:
    ThreadWire(std::shared_ptr<Office> office, int rank)
        : office_(std::move(office)), rank_(rank) {}

    std::unique_ptr<Flight> flight(std::shared_ptr<void const> /*memory*/) override {
        return std::make_unique<ThreadFlight>(*office_, rank_);
    }
    void progress() override {}
    double longest_pause_s() const override { return longest_sleep_s; }
    void sum(std::span<double> values, double /*timeout_seconds*/) override {
        auto const bytes = std::as_writable_bytes(values);
        office_->together(
            [&](std::vector<std::byte>& common, bool first) {
                if (first) {
                    common.assign(bytes.begin(), bytes.end());
                    return;
                }
                std::vector<double> sums(values.size());
                std::memcpy(sums.data(), common.data(), common.size());
                for (std::size_t i = 0; i < values.size(); ++i) {
                    sums[i] += values[i];
                }
                std::memcpy(common.data(), sums.data(), common.size());
            },
            [&](std::vector<std::byte> const& common) {
                std::copy(common.begin(), common.end(), bytes.begin());
            });
    }

  private:
    std::shared_ptr<Office> office_;
    int rank_;
};

} // namespace

std::vector<std::unique_ptr<Wire>> thread_wires(int ranks) {
    auto const office = std::make_shared<Office>(ranks);
    std::vector<std::unique_ptr<Wire>> all;
    for (int rank = 0; rank < ranks; ++rank) {
        all.push_back(std::make_unique<ThreadWire>(office, rank));
    }
    return all;
}

} // namespace lockstep::comm

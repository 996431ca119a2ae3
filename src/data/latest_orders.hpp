#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::data {

/// Orders of samples, each found by a key; the two latest are kept, since workers need two of them
/// where an epoch or a step ends. Any thread may call it.
class LatestOrders {
  public:
    using Order = std::shared_ptr<std::vector<std::int64_t> const>;

    /// The order of a key, made by `make()`: a std::vector of samples.
    template <class Make>
    Order of(std::uint64_t key, Make const& make) {
        std::lock_guard const lock(
            mutex_); // a thread that asks while it is being made waits for it
        for (auto const& made : made_) {
            if (made.order && made.key == key) {
                return made.order;
            }
        }
        made_[1] = {};
        std::swap(made_[0], made_[1]);
        made_[0] = {key, std::make_shared<std::vector<std::int64_t> const>(make())};
        return made_[0].order;
    }

  private:
    struct Made {
        std::uint64_t key = 0;
        Order order;
    };

    std::mutex mutex_;
    std::array<Made, 2> made_; ///< the latest first
};

} // namespace lockstep::data

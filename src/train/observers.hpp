#pragma once

#include "lockstep/train/events.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace lockstep::train {

/// Those that a run tells what happens; rank 0 alone has any.
class Observers {
  public:
    void set(std::vector<std::unique_ptr<Observer>> all) { all_ = std::move(all); }

    void tell(Event const& event) const {
        for (auto const& observer : all_) {
            observer->on(event);
        }
    }

  private:
    std::vector<std::unique_ptr<Observer>> all_;
};

} // namespace lockstep::train

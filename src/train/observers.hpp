#pragma once

#include "lockstep/events/events.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace lockstep::train {

/// The observers that receive a run's events; only rank 0 has any.
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

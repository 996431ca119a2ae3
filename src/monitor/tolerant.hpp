#pragma once

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/events/events.hpp"

#include <memory>

#include "log.hpp"

namespace lockstep::monitor {

/// An observer that may fail while the run continues, with a warning the first time: a full disk
/// must not end training. It is called again at the next event, when there may be room again.
class Tolerant : public train::Observer {
  public:
    Tolerant(std::unique_ptr<train::Observer> observer, Log log)
        : observer_(std::move(observer)), log_(std::move(log)) {}

    void on(train::Event const& event) override {
        try {
            observer_->on(event);
        } catch (...) {
            if (!warned_) {
                warn(log_, current_error());
            }
            warned_ = true;
        }
    }

    static void warn(Log const& log, Error const& error) {
        log.important(concat("warning: ", error.what(), ". The run continues"), Style::yellow);
    }

  private:
    std::unique_ptr<train::Observer> observer_;
    Log log_;
    bool warned_ = false;
};

} // namespace lockstep::monitor

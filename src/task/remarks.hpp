#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"

#include <string>

namespace lockstep::task {

/// What a task may be beside a task: one that looks at its samples before they are learnt.
class Remarks {
  public:
    virtual ~Remarks() = default;
    /// What to say of the samples of data.train, such as which of them nobody can learn; empty:
    /// nothing.
    ///
    /// Throws  Error 65 when none can be learnt
    virtual std::string remark(config::Data const& data, nn::Model const& model) const = 0;
};

} // namespace lockstep::task

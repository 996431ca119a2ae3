#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"

#include <string>

namespace lockstep::task {

/// An interface that a task may implement, too: it checks its samples before they are learnt.
class Remarks {
  public:
    virtual ~Remarks() = default;
    /// A remark on the samples of data.train, such as which of them cannot be learnt; empty: none.
    ///
    /// Throws  Error 65 when none can be learnt
    virtual std::string remark(config::Data const& data, nn::Model const& model) const = 0;
};

} // namespace lockstep::task

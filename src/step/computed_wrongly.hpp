#pragma once

#include "lockstep/base/error.hpp"

#include <utility>
#include <vector>

namespace lockstep::train {

/// A replica's gradient differs where another host computes it again: what a host has computed
/// since its last good check is not to be trusted.
class ComputedWrongly : public AgreedError {
  public:
    /// `suspects`: a rank of the host that is convicted, or of each of those of which one must be.
    ComputedWrongly(AgreedError const& error, std::vector<int> suspects)
        : AgreedError(error), suspects_(std::move(suspects)) {}

    std::vector<int> const& suspects() const noexcept { return suspects_; }

  private:
    std::vector<int> suspects_;
};

} // namespace lockstep::train

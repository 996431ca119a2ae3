#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator_watch.hpp"

namespace lockstep::measure {

/// Where a value that is not finite came from.
struct NotFinite {
    std::string name;      ///< of the operator
    std::string backward;  ///< the node of autograd that it ran in; empty: in forward
    std::string parameter; ///< the last that was read by then; empty: none
    std::string value;     ///< "NaN", "infinity" or "-infinity"
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> place; ///< of the value in that shape
    std::int64_t batch = 0;          ///< of this rank in this step
};

/// Finds the first operator of a step whose result is not finite though what it was computed from
/// is. Operators that are told to write infinity, as masks are made, do not count.
class FirstNotFinite : public OperatorListener {
  public:
    void begin_step() { found_.reset(), batch_ = -1; }
    void begin_batch() { ++batch_; }
    void heard(OperatorSeen const& seen) override;
    std::optional<NotFinite> const& found() const noexcept { return found_; }

  private:
    std::optional<NotFinite> found_;
    std::int64_t batch_ = -1;
};

} // namespace lockstep::measure

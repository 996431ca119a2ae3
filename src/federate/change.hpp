#pragma once

#include "federate/fixed_point.hpp"
#include "federate/model_vector.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::federate {

/// How a site's change is made ready to be added to those of others.
struct ChangeForm {
    FixedPoint fixed_point;
    double weight = 1;          ///< weight of the change in the sum, in (0, 1]
    double clip = 0;            ///< largest norm; 0: any
    bool keeps_buffers = false; ///< with differential privacy: they are not part of the change
};

/// What a site has learnt in a round, as whole numbers modulo 2^32.
struct EncodedChange {
    std::vector<std::uint32_t> words;
    double norm = 0;          ///< before it was clipped
    std::int64_t clipped = 0; ///< values beyond the range
};

/// The change of the values, scaled to the largest norm, clipped to the range, times the weight.
///
/// Throws  Error 65 where a value is not finite, or the models differ
EncodedChange encoded_change(ModelVector const& from, ModelVector const& to,
                             ChangeForm const& form);

/// Why such words cannot be a change of that form; empty: they can.
std::string fault_of_change(std::vector<std::uint32_t> const& words, std::size_t values,
                            ChangeForm const& form);

} // namespace lockstep::federate

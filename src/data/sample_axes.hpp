#pragma once

#include "lockstep/data/facts.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace lockstep::data {

/// What the dimensions of a sample mean. Those of a ragged field count its rows as the first.
struct SampleAxes {
    std::vector<std::size_t> places; ///< in space or time; the others hold channels or features
    bool known = true;               ///< a model goes by them; else they were guessed
    bool found = true; ///< else the channels were only assumed at the front: nothing shows them
};

/// Guesses the axes of the first input, for models that do not tell: rows of features where samples
/// are ragged, have named columns, or are frames of sound; a row of features, a picture without
/// channels, or channels where their means or `channel_axis` find them, and else at the front.
SampleAxes guessed_axes(Facts const& facts);

/// The dimension of a picture, clip or volume that can only hold its channels: of 1, 3 or 4
/// elements, where all others have more. None for a shape of fewer than three dimensions.
std::optional<std::size_t> channel_axis(h5::Shape const& shape);

/// The dimension whose channels several means are of, where they can be of one alone.
std::optional<std::size_t> axis_of_means(Facts const& facts);

} // namespace lockstep::data

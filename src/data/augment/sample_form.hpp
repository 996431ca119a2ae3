#pragma once

#include "data/sample_axes.hpp"
#include "lockstep/data/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::data {

/// A target that has a value for each place of the first input.
struct PlaceTarget {
    std::size_t field = 1;           ///< its number in a batch
    h5::Shape shape{};               ///< of a sample
    std::vector<std::size_t> places; ///< its dimensions that are those of the input's places
    bool classes = true;             ///< else values between which others lie
};

/// What is known of the samples that are changed.
struct SampleForm {
    FieldInfo input{}; ///< the first
    SampleAxes axes{};
    /// What the first input was normalised by: one value for each channel, or one, or none.
    std::vector<double> mean{};
    std::vector<double> std{};
    bool channels_last = false; ///< several of them are of the last dimension, not of the first
    std::optional<PlaceTarget> target{}; ///< moves with the input
    bool has_labels = false;             ///< the target is a class of each sample, not real values

    /// The number of dimensions of a sample; a ragged field counts its rows as the first.
    std::size_t dimensions() const { return input.shape.size() + (input.ragged ? 1 : 0); }
    /// Elements of each place together: the channels of a picture, or features of a row.
    std::int64_t channels() const;
    /// The dimension of the channels; none where no dimension or several are left for them.
    std::optional<std::size_t> channel_axis() const;
    /// "channels-last by model.layout": where the channels are, and who says so, for whoever stored
    /// them elsewhere. Empty where they are at neither end.
    std::string layout_text() const;
    /// Whether there is a mean for all, or one for each channel.
    bool scales_fit() const;
};

/// The dimensions of a target that are the places of an input; none where they differ.
std::optional<std::vector<std::size_t>> places_of(h5::Shape const& target, FieldInfo const& input,
                                                  SampleAxes const& axes);

} // namespace lockstep::data

#pragma once

#include "lockstep/events/events.hpp"
#include "lockstep/task/task.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// The class of each place of a sample.
///
/// Shape  both [place…] int64; a truth that does not count in the loss is -1
struct PlaceClasses {
    torch::Tensor truth;
    torch::Tensor guess;
};

/// The classes of a batch's sample.
///
/// Shape  output [classes, place…]
PlaceClasses classes_of_places(task::Task const& task, task::Tensors const& sample,
                               torch::Tensor const& output);

/// The slice of a volume, along its first dimension, with the most mistakes; of several, the one
/// nearest to the middle. -1 where there are not three dimensions.
std::int64_t worst_slice(PlaceClasses const& places);

/// "tumour 1.25 %, edema 0.50 %, other 98.25 %": the shares of the classes, the largest first.
std::string shares_text(torch::Tensor const& classes, std::vector<std::string> const& names);

/// A sample, the same with the true classes in colours, and with the predicted ones, next to each
/// other. The first class has no colour, and places that do not count are dark.
///
/// Shape    places [height, width]; sample as `pictures_of` takes one
/// Returns  nothing where the sample is no image of these places
std::optional<Picture> picture_of_places(torch::Tensor const& sample, bool channels_last,
                                         PlaceClasses const& places, std::int64_t slice);

/// The classes of a slice as a text, and back: "3 4 0x5 1x7", its height and width and the runs
/// of each class.
std::string text_of_slice(torch::Tensor const& classes);
torch::Tensor slice_of_text(std::string const& text);

} // namespace lockstep::train

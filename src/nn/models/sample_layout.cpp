#include "sample_layout.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"
#include "nn/advised_model.hpp"

#include <algorithm>

namespace lockstep::nn {

namespace {

std::string extents_text(h5::Shape const& shape) {
    std::vector<std::string> texts;
    for (auto const extent : shape) {
        texts.push_back(std::to_string(extent));
    }
    return joined(texts, " x ");
}

} // namespace

config::OwnKey SampleLayout::key() {
    return {"layout", "channels-first",
            "order of the dimensions of a stored sample: channels-first or channels-last"};
}

SampleLayout::SampleLayout(config::OwnValues const& values, Interface const& interface,
                           std::size_t dimensions, bool of_places)
    : shape_(interface.sample_shape.begin(), interface.sample_shape.end()),
      extents_(interface.sample_shape), adds_channel_(extents_.size() == dimensions),
      channels_last_(values.choice("layout", {"channels-first", "channels-last"}) ==
                     "channels-last"),
      computes_channels_last_(interface.channels_last), of_places_(of_places) {
    if (adds_channel_) {
        return;
    }
    if (extents_.size() != dimensions + 1) {
        throw Error(ExitCode::usage,
                    {"the model cannot take these samples",
                     concat("a sample has ", amount_of(extents_.size(), "dimension"), ", ",
                            h5::shape_text(shape_), ", but the model needs ", dimensions, ", or ",
                            dimensions + 1, " with channels"),
                     of_places ? advised_model_of_places(extents_.size())
                               : advised_model(extents_.size(), false, false)});
    }
    auto const channels = channels_last_ ? extents_.end() - 1 : extents_.begin();
    channels_ = *channels;
    extents_.erase(channels);
}

data::SampleAxes SampleLayout::axes() const {
    data::SampleAxes axes;
    auto const first = static_cast<std::size_t>(adds_channel_ || channels_last_ ? 0 : 1);
    for (std::size_t i = 0; i < extents_.size(); ++i) {
        axes.places.push_back(first + i);
    }
    return axes;
}

bool SampleLayout::is_elsewhere(std::size_t axis) const {
    return adds_channel_ || axis != (channels_last_ ? shape_.size() - 1 : 0);
}

std::optional<std::size_t> SampleLayout::doubtful_axis() const {
    auto const axis = data::channel_axis(shape_);
    return axis && is_elsewhere(*axis) ? axis : std::nullopt;
}

std::string SampleLayout::mend(std::size_t axis) const {
    bool const last = axis == shape_.size() - 1;
    auto const layout = concat("model.layout = ", last ? "channels-last" : "channels-first");
    if (adds_channel_ && shape_.size() == 2) {
        return "If these are rows of features, choose model.name = cnn1d";
    }
    if (adds_channel_) { // pictures, taken for volumes
        return concat("If dimension ", axis,
                      " holds the channels of pictures, choose model.name = ",
                      of_places_ ? "unet" : "cnn, resnet or vit",
                      axis == 0 ? "" : concat(", and set ", layout));
    }
    return last || axis == 0
               ? concat("If the ", last ? "last" : "first", " dimension holds the channels, set ",
                        layout)
               : concat("If dimension ", axis,
                        " holds the channels, store it as the first "
                        "dimension of a sample, or as the last with model.layout = channels-last");
}

std::string SampleLayout::remark() const {
    auto const axis = doubtful_axis();
    return axis ? remark_on(*axis) : std::string();
}

std::string SampleLayout::remark_on(std::size_t axis) const {
    if (!is_elsewhere(axis)) {
        return {};
    }
    return concat("warning: samples of ", extents_text(shape_), " are read as ",
                  amount_of(channels_, "channel"), " of ",
                  extents_text({extents_.begin(), extents_.end()}), " (",
                  adds_channel_ ? std::string("they have no dimension for channels")
                                : concat("model.layout = ",
                                         channels_last_ ? "channels-last" : "channels-first"),
                  "). ", mend(axis));
}

std::string SampleLayout::advice(std::string const& next) const {
    auto const axis = doubtful_axis();
    if (!axis) {
        return next;
    }
    auto otherwise = next;
    otherwise.front() = static_cast<char>(std::tolower(otherwise.front()));
    return concat(mend(*axis), ". Otherwise, ", otherwise);
}

torch::Tensor SampleLayout::arranged(torch::Tensor const& samples) const {
    auto const with_channels = adds_channel_    ? samples.unsqueeze(1)
                               : channels_last_ ? samples.movedim(-1, 1)
                                                : samples;
    if (computes_channels_last_ && !samples.is_cpu()) {
        // Layers keep the memory format of their inputs, which strides alone tell: those of a
        // single channel fit both formats until they are copied.
        return with_channels.to(with_channels.options(), /*non_blocking=*/false, /*copy=*/false,
                                extents_.size() == 2 ? torch::MemoryFormat::ChannelsLast
                                                     : torch::MemoryFormat::ChannelsLast3d);
    }
    return channels_last_ ? with_channels.contiguous() : with_channels;
}

} // namespace lockstep::nn

#include "sample_layout.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::nn {

config::OwnKey SampleLayout::key() {
    return {"layout", "channels-first",
            "order of the dimensions of a stored sample: channels-first or channels-last"};
}

SampleLayout::SampleLayout(config::OwnValues const& values, Interface const& interface,
                           std::size_t dimensions)
    : extents_(interface.sample_shape), adds_channel_(extents_.size() == dimensions),
      channels_last_(values.choice("layout", {"channels-first", "channels-last"}) ==
                     "channels-last"),
      computes_channels_last_(interface.channels_last) {
    if (adds_channel_) {
        return;
    }
    if (extents_.size() != dimensions + 1) {
        throw Error(ExitCode::usage,
                    {"the model cannot take these samples",
                     concat("a sample has ", amount_of(extents_.size(), "dimension"),
                            ", but the model needs ", dimensions, ", or ", dimensions + 1,
                            " with channels"),
                     "Choose another model, such as mlp, or other data"});
    }
    auto const channels = channels_last_ ? extents_.end() - 1 : extents_.begin();
    channels_ = *channels;
    extents_.erase(channels);
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

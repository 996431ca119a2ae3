#include "batches/pictures.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr std::int64_t min_side = 4; ///< what is smaller is a table, no image

/// [channels, height, width] of one sample; undefined where it is not an image.
torch::Tensor arranged(torch::Tensor sample, bool channels_last) {
    if (sample.dim() == 2) {
        sample = sample.unsqueeze(0);
    } else if (channels_last && sample.dim() > 2) {
        sample = sample.movedim(-1, 0);
    }
    if (sample.dim() == 4) {
        sample = sample.select(1, sample.size(1) / 2);
    }
    if (sample.dim() != 3 || sample.size(1) < min_side || sample.size(2) < min_side) {
        return {};
    }
    auto const channels = sample.size(0);
    return channels == 1 || channels == 3 ? sample : sample.narrow(0, channels / 2, 1);
}

Picture drawn(torch::Tensor const& image) {
    auto const min = image.min();
    auto const range = (image.max() - min).clamp_min(1e-12);
    auto const levels = ((image - min) / range * 255).round().to(torch::kUInt8);
    auto const pixels = levels.movedim(0, -1).contiguous();
    auto const* const first = pixels.const_data_ptr<std::uint8_t>();
    return {.width = image.size(2),
            .height = image.size(1),
            .channels = image.size(0),
            .pixels = std::vector<std::uint8_t>(first, first + pixels.numel())};
}

} // namespace

std::vector<Picture> pictures_of(torch::Tensor const& samples, bool channels_last,
                                 std::int64_t max) {
    torch::NoGradGuard const no_grad;
    std::vector<Picture> pictures;
    if (!samples.is_floating_point() || samples.dim() < 3) {
        return pictures;
    }
    for (std::int64_t i = 0; i < std::min(max, samples.size(0)); ++i) {
        auto const sample = samples[i].to(torch::kCPU, torch::kFloat32);
        auto const image = arranged(sample, channels_last);
        if (image.defined() && image.isfinite().all().item<bool>()) {
            pictures.push_back(drawn(image));
        }
    }
    return pictures;
}

task::Tensors PicturedBatches::next() {
    auto batch = batches_.next();
    if (limit_ > 0 && batch.inputs.size() > 0 && !batch.inputs[0].lengths.defined()) {
        pictures_ = pictures_of(batch.inputs.only(), channels_last_, limit_);
    }
    limit_ = 0;
    return batch;
}

} // namespace lockstep::train

#include "batches/pictures.hpp"

#include "nn/axis_reader.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr std::int64_t min_side = 4; ///< what is smaller is a table, no image

/// [channels, height, width] of one sample; undefined where it is not an image.
torch::Tensor arranged(torch::Tensor sample, bool channels_last, std::int64_t slice) {
    bool const is_volume_alone = slice >= 0 && sample.dim() == 3; // without channels
    if (sample.dim() == 2 || is_volume_alone) {
        sample = sample.unsqueeze(0);
    } else if (channels_last && sample.dim() > 2) {
        sample = sample.movedim(-1, 0);
    }
    if (sample.dim() == 4) {
        sample = sample.select(1, slice < 0 ? sample.size(1) / 2 : slice);
    }
    if (sample.dim() != 3 || sample.size(1) < min_side || sample.size(2) < min_side) {
        return {};
    }
    auto const channels = sample.size(0);
    return channels == 1 || channels == 3 ? sample : sample.narrow(0, channels / 2, 1);
}

} // namespace

bool has_channels_last(nn::Model const& model, data::Facts const& facts,
                       data::FieldInfo const& input) {
    auto const places = nn::axes_of(model, facts).places;
    return places.size() > 1 && places.back() + 1 < input.shape.size();
}

torch::Tensor as_stored(torch::Tensor const& samples, data::Facts const& facts) {
    auto values = samples.to(torch::kCPU, torch::kFloat32);
    if (!facts.mean.empty()) {
        std::vector<std::int64_t> shape(static_cast<std::size_t>(values.dim()), 1);
        if (facts.mean.size() > 1) {
            shape.at(facts.channels_last ? shape.size() - 1 : 1) = std::ssize(facts.mean);
        }
        values = values * torch::tensor(facts.std, torch::kFloat32).view(shape) +
                 torch::tensor(facts.mean, torch::kFloat32).view(shape);
    }
    bool const bytes = facts.inputs.front().type == h5::Type::u8;
    return bytes ? (values * 255).round().clamp(0, 255).to(torch::kUInt8) : values;
}

torch::Tensor levels_of(torch::Tensor const& sample, bool channels_last, std::int64_t slice) {
    auto const image = arranged(sample.to(torch::kCPU, torch::kFloat32), channels_last, slice);
    if (!image.defined() || !image.isfinite().all().item<bool>()) {
        return {};
    }
    if (sample.scalar_type() == torch::kUInt8) {
        return image.to(torch::kUInt8).movedim(0, -1).contiguous();
    }
    auto const min = image.min();
    auto const range = (image.max() - min).clamp_min(1e-12);
    auto const levels = ((image - min) / range * 255).round().to(torch::kUInt8);
    return levels.movedim(0, -1).contiguous();
}

Picture picture_of(torch::Tensor const& levels) {
    auto const all = levels.contiguous();
    auto const* const first = all.const_data_ptr<std::uint8_t>();
    return {.width = all.size(1),
            .height = all.size(0),
            .channels = all.size(2),
            .pixels = std::vector<std::uint8_t>(first, first + all.numel())};
}

std::vector<Picture> pictures_of(torch::Tensor const& samples, bool channels_last,
                                 std::int64_t max) {
    torch::NoGradGuard const no_grad;
    std::vector<Picture> pictures;
    bool const shown = samples.is_floating_point() || samples.scalar_type() == torch::kUInt8;
    if (!shown || samples.dim() < 3) {
        return pictures;
    }
    for (std::int64_t i = 0; i < std::min(max, samples.size(0)); ++i) {
        if (auto const levels = levels_of(samples[i], channels_last); levels.defined()) {
            pictures.push_back(picture_of(levels));
        }
    }
    return pictures;
}

task::Tensors PicturedBatches::next() {
    auto batch = batches_.next();
    if (limit_ > 0 && batch.inputs.size() > 0 && !batch.inputs[0].lengths.defined()) {
        auto const& samples = batch.inputs.only();
        pictures_ = pictures_of(
            samples.is_floating_point() ? as_stored(samples.slice(0, 0, limit_), facts_) : samples,
            channels_last_, limit_);
    }
    limit_ = 0;
    return batch;
}

} // namespace lockstep::train

#include "arena/arena.hpp"

#include "base/text.hpp"
#include "device/place.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::train {

torch::Tensor borrowed(float* values, std::int64_t size, torch::Device device) {
    return torch::from_blob(values, {size}, torch::TensorOptions(torch::kFloat32).device(device));
}

Arena::Arena(Layout const& layout, torch::Tensor parameters)
    : layout_(layout), parameters_(std::move(parameters)) {}

torch::Tensor Arena::view(ParameterRange const& entry) const {
    return parameters_.narrow(0, entry.first, entry.count).view(entry.shape);
}

void Arena::fill_from(nn::Model const& model, std::vector<Range> const& ranges) const {
    torch::NoGradGuard const no_grad;
    auto const named = model.named_parameters();
    for (auto const& entry : layout_.entries) {
        auto const values = named[entry.name].detach().to(torch::kFloat32).flatten();
        for (auto const& range : ranges) {
            auto const first = std::max(entry.first, range.first);
            auto const last = std::min(entry.first + entry.count, range.last);
            if (first < last) {
                parameters_.narrow(0, first, last - first)
                    .copy_(values.narrow(0, first - entry.first, last - first));
            }
        }
    }
}

void Arena::adopt(nn::Model& model) {
    torch::NoGradGuard const no_grad;
    auto named = model.named_parameters();
    for (auto const& entry : layout_.entries) {
        auto& parameter = named[entry.name];
        if (parameter.scalar_type() == torch::kFloat32) {
            replace(parameter, view(entry));
        } else {
            followers_.push_back({parameter, view(entry)});
        }
    }
    refresh();
}

void Arena::refresh() const {
    torch::NoGradGuard const no_grad;
    for (auto const& follower : followers_) {
        torch::Tensor(follower.parameter.detach()).copy_(follower.master);
    }
}

} // namespace lockstep::train

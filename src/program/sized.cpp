#include "sized.hpp"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace lockstep::program {

namespace {

/// The channels of the input that each output of a convolution sees are those of the weight.
/// `channels_at`: the input's channels, from its end; 0: right after the samples.
template <std::int64_t channels_at, std::size_t groups_at = 6>
void set_groups(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    auto const& weight = given[1].toTensor();
    auto const at = channels_at == 0 ? 1 : input.dim() - channels_at;
    if (given[groups_at].toInt() != 1 && at >= 0 && at < input.dim() && weight.dim() > 1 &&
        weight.size(1) > 0) {
        given[groups_at] = input.size(at) / weight.size(1);
    }
}

/// Sets the groups of a convolution; those of a transposed one do not follow from its tensors.
void set_groups_if_plain(std::vector<c10::IValue>& given) {
    constexpr std::size_t transposed_at = 6;
    if (!given[transposed_at].toBool()) {
        set_groups<0, transposed_at + 2>(given);
    }
}

/// Sets the shape of a norm over the last extents to those of its input.
void set_shape(std::vector<c10::IValue>& given) {
    auto const sizes = given[0].toTensor().sizes();
    if (!given[1].isIntList()) {
        return; // computed from its tensors already
    }
    auto const count = given[1].toIntVector().size();
    if (count <= sizes.size()) {
        given[1] = sizes.slice(sizes.size() - count).vec();
    }
}

} // namespace

std::shared_ptr<Replacement const> sized(c10::OperatorHandle const& op) {
    static std::map<std::string, void (*)(std::vector<c10::IValue>&)> const all{
        {"aten::conv1d", set_groups<2>},
        {"aten::conv2d", set_groups<3>},
        {"aten::conv3d", set_groups<4>},
        {"aten::_convolution_mode", set_groups<0>},
        {"aten::convolution", set_groups_if_plain},
        {"aten::_convolution", set_groups_if_plain},
        {"aten::layer_norm", set_shape},
        {"aten::rms_norm", set_shape},
    };
    auto const found = all.find(op.schema().name());
    if (found == all.end()) {
        return nullptr;
    }
    return std::make_shared<Replacement const>(
        [op, set = found->second](std::vector<c10::IValue>& stack) {
            set(stack);
            op.callBoxed(stack);
        });
}

} // namespace lockstep::program

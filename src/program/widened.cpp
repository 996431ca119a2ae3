#include "program/widened.hpp"

#include "base/vector_clones.hpp"
#include "program/own_kernels.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest3d.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lockstep::program {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The narrow side of planes of depth, height and width; pictures have depth 1, which stays.
struct Planes {
    std::int64_t count;
    std::int64_t depth;
    std::int64_t height;
    std::int64_t width;
    std::int64_t deeper; ///< 2, or 1: the depth stays

    std::int64_t size() const { return depth * height * width; }
    std::int64_t wide_size() const { return size() * 4 * deeper; }
};

Planes planes_of(at::IntArrayRef sizes) {
    bool const volumes = sizes.size() == 5;
    return {sizes[0] * sizes[1], volumes ? sizes[2] : 1, sizes[sizes.size() - 2],
            sizes[sizes.size() - 1], volumes ? 2 : 1};
}

LOCKSTEP_VECTOR_CLONES void widen(Planes const& planes, float const* from, float* to) {
    auto const wide = 2 * planes.width;
    for (std::int64_t d = 0; d < planes.count * planes.depth; ++d) {
        auto* const first = to;
        for (std::int64_t h = 0; h < planes.height; ++h, from += planes.width, to += 2 * wide) {
            for (std::int64_t w = 0; w < planes.width; ++w) {
                to[2 * w] = from[w];
                to[2 * w + 1] = from[w];
            }
            std::copy_n(to, wide, to + wide);
        }
        for (std::int64_t again = 1; again < planes.deeper; ++again) {
            to = std::copy(first, to, to);
        }
    }
}

/// The gradients of a value's neighbours are added from zero, in the order in which they lie, as
/// LibTorch adds them.
LOCKSTEP_VECTOR_CLONES void narrow(Planes const& planes, float const* from, float* to) {
    auto const wide = 2 * planes.width;
    auto const wide_plane = 2 * planes.height * wide;
    for (std::int64_t d = 0; d < planes.count * planes.depth; ++d) {
        auto const* const plane = from + d * planes.deeper * wide_plane;
        for (std::int64_t h = 0; h < planes.height; ++h, to += planes.width) {
            std::fill_n(to, planes.width, 0.0F);
            for (std::int64_t row = 0; row < 2 * planes.deeper; ++row) {
                auto const* const wider = plane + row / 2 * wide_plane + (2 * h + row % 2) * wide;
                for (std::int64_t w = 0; w < planes.width; ++w) {
                    to[w] = to[w] + wider[2 * w] + wider[2 * w + 1];
                }
            }
        }
    }
}

/// Calls work(some planes, the first of them), perhaps on several threads.
void for_planes(Planes const& planes, auto const& work) {
    constexpr std::int64_t values_at_once = 32'768; // as LibTorch's operators
    at::parallel_for(0, planes.count, 1 + values_at_once / planes.wide_size(),
                     [&](std::int64_t first, std::int64_t last) {
                         auto part = planes;
                         part.count = last - first;
                         work(part, first);
                     });
}

class WidenFunction : public torch::autograd::Function<WidenFunction> {
  public:
    static at::Tensor forward(AutogradContext* context, at::Tensor const& inputs) {
        RECORD_FUNCTION("lockstep::widened", std::vector<c10::IValue>({inputs}));
        auto const planes = planes_of(inputs.sizes());
        auto sizes = inputs.sizes().vec();
        std::for_each(sizes.begin() + 2, sizes.end(), [](auto& extent) { extent *= 2; });
        auto outputs = at::empty(sizes, inputs.options());
        auto const* const from = inputs.const_data_ptr<float>();
        auto* const to = outputs.mutable_data_ptr<float>();
        for_planes(planes, [&](Planes const& part, std::int64_t first) {
            widen(part, from + first * planes.size(), to + first * planes.wide_size());
        });
        context->saved_data["sizes"] = inputs.sizes().vec();
        return outputs;
    }

    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        TORCH_CHECK(!(at::GradMode::is_enabled() && gradients[0].requires_grad()),
                    "the gradient of widened values has no gradient of its own");
        auto const sizes = context->saved_data["sizes"].toIntVector();
        auto const planes = planes_of(sizes);
        auto const gradient = gradients[0].contiguous();
        auto of_inputs = at::empty(sizes, gradient.options());
        auto const* const from = gradient.const_data_ptr<float>();
        auto* const to = of_inputs.mutable_data_ptr<float>();
        for_planes(planes, [&](Planes const& part, std::int64_t first) {
            narrow(part, from + first * planes.wide_size(), to + first * planes.size());
        });
        return {of_inputs};
    }
};

bool doubles(at::Tensor const& inputs, at::IntArrayRef extents) {
    if (inputs.dim() != static_cast<std::int64_t>(extents.size()) + 2) {
        return false;
    }
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (extents[i] != 2 * inputs.size(static_cast<std::int64_t>(i) + 2)) {
            return false;
        }
    }
    return true;
}

} // namespace

at::Tensor widened(at::Tensor const& inputs, at::IntArrayRef extents) {
    if (may_compute(inputs) && doubles(inputs, extents)) {
        return WidenFunction::apply(inputs);
    }
    return extents.size() == 2 ? at::upsample_nearest2d(inputs, extents)
                               : at::upsample_nearest3d(inputs, extents);
}

} // namespace lockstep::program

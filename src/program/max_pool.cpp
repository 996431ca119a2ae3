#include "program/max_pool.hpp"

#include "program/own_kernels.hpp"
#include "program/pool_planes.hpp"

#include <ATen/Parallel.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool1d_with_indices.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/max_pool3d_with_indices.h>
#include <ATen/ops/relu.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace lockstep::program {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The value of one of `dimensions`; 0 where there is none.
std::int64_t option_of(std::vector<std::int64_t> const& values, std::size_t dimension,
                       std::size_t dimensions) {
    if (values.size() != 1 && values.size() != dimensions) {
        return 0;
    }
    return values[values.size() == 1 ? 0 : dimension];
}

/// Nothing: own kernels have no such windows, or LibTorch refuses them.
std::optional<PoolWindows> windows_of(at::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const dimensions = options.dimensions;
    auto const given = static_cast<std::size_t>(inputs.dim());
    if (given != dimensions + 1 && given != dimensions + 2) {
        return std::nullopt;
    }
    PoolWindows windows;
    windows.rectified = options.rectified;
    for (std::size_t i = 0; i < dimensions; ++i) {
        auto const to = 3 - dimensions + i;
        auto const input = inputs.size(static_cast<std::int64_t>(given - dimensions + i));
        auto const kernel = option_of(options.kernel, i, dimensions);
        auto const stride =
            options.stride.empty() ? kernel : option_of(options.stride, i, dimensions);
        auto const padding =
            options.padding.empty() ? -1 : option_of(options.padding, i, dimensions);
        constexpr auto most = std::int64_t{PoolWindows::max_places};
        if (kernel < 1 || kernel > most || stride < 1 || stride > input + most || padding < 0 ||
            padding > kernel / 2 || option_of(options.dilation, i, dimensions) != 1) {
            return std::nullopt;
        }
        auto const output = at::native::pooling_output_shape<std::int64_t>(
            input, kernel, padding, stride, 1, options.ceil_mode);
        if (output < 1) {
            return std::nullopt;
        }
        windows.inputs[to] = input;
        windows.outputs[to] = output;
        windows.kernel[to] = kernel;
        windows.stride[to] = stride;
        windows.padding[to] = padding;
    }
    if (PoolWindows::product(windows.kernel) > std::int64_t{PoolWindows::max_places}) {
        return std::nullopt;
    }
    return windows;
}

/// Calls work(first plane, number of planes), perhaps on several threads.
void for_planes(PoolWindows const& windows, std::int64_t planes, auto const& work) {
    constexpr std::int64_t values_at_once = 32'768; // as LibTorch's operators
    auto const at_once = 1 + values_at_once / PoolWindows::product(windows.inputs);
    at::parallel_for(0, planes, at_once,
                     [&](std::int64_t first, std::int64_t last) { work(first, last - first); });
}

/// What backward needs beside the places.
struct Pooled : torch::CustomClassHolder {
    PoolWindows windows;
    std::vector<std::int64_t> sizes; ///< of the inputs
};

/// Memory for the place of each maximum within its window.
at::Tensor places_for(at::Tensor const& inputs, PoolWindows const& windows,
                      std::size_t dimensions) {
    auto sizes = inputs.sizes().vec();
    std::copy(windows.outputs.end() - static_cast<std::ptrdiff_t>(dimensions),
              windows.outputs.end(), sizes.end() - static_cast<std::ptrdiff_t>(dimensions));
    return at::empty(sizes, inputs.options().dtype(at::kByte));
}

class MaxPoolFunction : public torch::autograd::Function<MaxPoolFunction> {
  public:
    static at::Tensor forward(AutogradContext* context, at::Tensor const& inputs,
                              PoolWindows const& windows, at::Tensor const& places) {
        RECORD_FUNCTION("lockstep::max_pool", std::vector<c10::IValue>({inputs}));
        auto outputs = at::empty(places.sizes(), inputs.options());
        auto const* const from = inputs.const_data_ptr<float>();
        auto* const to = outputs.mutable_data_ptr<float>();
        auto* const to_places = places.mutable_data_ptr<std::uint8_t>();
        auto const from_size = PoolWindows::product(windows.inputs);
        auto const to_size = PoolWindows::product(windows.outputs);
        for_planes(windows, inputs.numel() / from_size,
                   [&](std::int64_t first, std::int64_t count) {
                       pool_planes(windows, {count, from + first * from_size, to + first * to_size,
                                             to_places + first * to_size});
                   });
        auto pooled = c10::make_intrusive<Pooled>();
        pooled->windows = windows;
        pooled->sizes = inputs.sizes().vec();
        context->save_for_backward({places, windows.rectified ? outputs : at::Tensor()});
        context->saved_data["pooled"] = c10::IValue::make_capsule(pooled);
        return outputs;
    }

    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        auto const pooled =
            c10::static_intrusive_pointer_cast<Pooled>(context->saved_data["pooled"].toCapsule());
        auto const& windows = pooled->windows;
        TORCH_CHECK(!(at::GradMode::is_enabled() && gradients[0].requires_grad()),
                    "the gradient of a max pool has no gradient of its own");
        auto const gradient = gradients[0].contiguous();
        auto const saved = context->get_saved_variables();
        auto of_inputs = at::empty(pooled->sizes, gradient.options());
        auto const* const from = gradient.const_data_ptr<float>();
        auto const* const places = saved[0].const_data_ptr<std::uint8_t>();
        auto const* const outputs =
            windows.rectified ? saved[1].const_data_ptr<float>() : gradient.const_data_ptr<float>();
        auto* const to = of_inputs.mutable_data_ptr<float>();
        auto const from_size = PoolWindows::product(windows.outputs);
        auto const to_size = PoolWindows::product(windows.inputs);
        for_planes(
            windows, of_inputs.numel() / to_size, [&](std::int64_t first, std::int64_t count) {
                auto const at = first * from_size;
                unpool_planes(windows,
                              {count, from + at, places + at, outputs + at, to + first * to_size});
            });
        return {of_inputs, {}, {}};
    }
};

at::Tensor max_pool_of_torch(at::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const pool = options.dimensions == 1   ? &at::max_pool1d
                      : options.dimensions == 2 ? &at::max_pool2d
                                                : &at::max_pool3d;
    return pool(options.rectified ? at::relu(inputs) : inputs, options.kernel, options.stride,
                options.padding, options.dilation, options.ceil_mode);
}

PooledWithIndices with_indices_of_torch(at::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const pool = options.dimensions == 1   ? &at::max_pool1d_with_indices
                      : options.dimensions == 2 ? &at::max_pool2d_with_indices
                                                : &at::max_pool3d_with_indices;
    auto [outputs, indices] =
        pool(options.rectified ? at::relu(inputs) : inputs, options.kernel, options.stride,
             options.padding, options.dilation, options.ceil_mode);
    return {std::move(outputs), std::move(indices)};
}

at::Tensor indices_of(PoolWindows const& windows, at::Tensor const& places) {
    auto indices = at::empty(places.sizes(), places.options().dtype(at::kLong));
    auto const* const from = places.const_data_ptr<std::uint8_t>();
    auto* const to = indices.mutable_data_ptr<std::int64_t>();
    auto const size = PoolWindows::product(windows.outputs);
    for_planes(windows, places.numel() / size, [&](std::int64_t first, std::int64_t count) {
        index_planes(windows, {count, from + first * size, to + first * size});
    });
    return indices;
}

} // namespace

at::Tensor max_pool(at::Tensor const& inputs, MaxPoolOptions const& options) {
    if (!may_compute(inputs)) {
        return max_pool_of_torch(inputs, options);
    }
    auto const windows = windows_of(inputs, options);
    return windows ? MaxPoolFunction::apply(inputs, *windows,
                                            places_for(inputs, *windows, options.dimensions))
                   : max_pool_of_torch(inputs, options);
}

PooledWithIndices max_pool_with_indices(at::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const windows = may_compute(inputs) ? windows_of(inputs, options) : std::nullopt;
    if (!windows) {
        return with_indices_of_torch(inputs, options);
    }
    auto const places = places_for(inputs, *windows, options.dimensions);
    auto outputs = MaxPoolFunction::apply(inputs, *windows, places);
    return {std::move(outputs), indices_of(*windows, places)};
}

} // namespace lockstep::program

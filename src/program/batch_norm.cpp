#include "program/batch_norm.hpp"

#include "program/norm_planes.hpp"
#include "program/own_kernels.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace lockstep::program {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Whether LibTorch's kernels for this processor fuse multiply-adds, as the own ones do.
bool fuses() {
    static bool const found = [] {
        auto const capability = at::get_cpu_capability();
        return capability == "AVX2" || capability == "AVX512";
    }();
    return found;
}

bool is_plain_term(at::Tensor const& term, std::int64_t channels) {
    return term.defined() && term.is_cpu() && term.scalar_type() == at::kFloat &&
           term.is_contiguous() && term.dim() == 1 && term.numel() == channels;
}

bool is_plain(at::Tensor const& inputs, BatchNormTerms const& terms) {
    if (!fuses() || !may_compute(inputs) || inputs.dim() < 3) {
        return false;
    }
    auto const channels = inputs.size(1);
    return inputs.numel() / channels > 1 && is_plain_term(terms.weight, channels) &&
           is_plain_term(terms.bias, channels) && is_plain_term(terms.running_mean, channels) &&
           is_plain_term(terms.running_var, channels);
}

std::span<float> floats_of(at::Tensor const& tensor) {
    return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

void sum_on_threads(PlanesToNorm const& planes, std::span<float> mean, std::span<float> squares) {
    auto const groups = (planes.channels + channels_at_once - 1) / channels_at_once;
    at::parallel_for(0, groups, 1, [&](std::int64_t first, std::int64_t last) {
        sum_planes(planes, first * channels_at_once,
                   std::min(last * channels_at_once, planes.channels), mean, squares);
    });
}

void scale_on_threads(PlanesToNorm const& planes, std::span<float const> factor,
                      std::span<float const> term, float* outputs) {
    at::parallel_for(0, planes.samples, 1, [&](std::int64_t first, std::int64_t last) {
        auto part = planes;
        auto const begin = first * planes.channels * planes.places;
        part.samples = last - first;
        part.values += begin;
        scale_planes(part, factor, term, outputs + begin);
    });
}

/// As LibTorch's batch_norm_cpu_update_stats_template.
void update_running(BatchNormTerms const& terms, std::span<float const> mean,
                    std::span<float const> squares, std::int64_t count) {
    auto const running_mean = floats_of(terms.running_mean);
    auto const running_var = floats_of(terms.running_var);
    auto const momentum = static_cast<float>(terms.momentum);
    for (std::size_t c = 0; c < mean.size(); ++c) {
        running_mean[c] = momentum * mean[c] + (1 - momentum) * running_mean[c];
        double const unbiased = squares[c] / static_cast<float>(count - 1);
        running_var[c] = static_cast<float>(momentum * unbiased + (1 - momentum) * running_var[c]);
    }
}

class BatchNormFunction : public torch::autograd::Function<BatchNormFunction> {
  public:
    static at::Tensor forward(AutogradContext* context, at::Tensor const& inputs,
                              at::Tensor const& weight, at::Tensor const& bias,
                              BatchNormTerms const& terms) {
        auto const channels = inputs.size(1);
        auto const count = inputs.numel() / channels;
        PlanesToNorm const planes{.samples = inputs.size(0),
                                  .channels = channels,
                                  .places = count / inputs.size(0),
                                  .values = inputs.const_data_ptr<float>()};
        auto const mean = at::empty({channels}, inputs.options());
        auto const deviation = at::empty({channels}, inputs.options()); // 1 / it
        auto const squares = at::empty({channels}, inputs.options());
        auto const terms_of_outputs = at::empty({2, channels}, inputs.options());
        auto const means = floats_of(mean);
        auto const sums = floats_of(squares);
        sum_on_threads(planes, means, sums);
        update_running(terms, means, sums, count);
        auto const factor = floats_of(terms_of_outputs).first(means.size());
        auto const plus = floats_of(terms_of_outputs).last(means.size());
        auto const inverse = floats_of(deviation);
        auto const* const by = weight.const_data_ptr<float>();
        auto const* const add = bias.const_data_ptr<float>();
        for (std::size_t c = 0; c < means.size(); ++c) {
            double const variance = sums[c] / static_cast<float>(count);
            inverse[c] = static_cast<float>(1 / std::sqrt(variance + terms.epsilon));
            factor[c] = inverse[c] * by[c];
            plus[c] = std::fma(-means[c], factor[c], add[c]);
        }
        auto outputs = at::empty_like(inputs);
        scale_on_threads(planes, factor, plus, outputs.mutable_data_ptr<float>());
        context->save_for_backward({inputs, weight, mean, deviation});
        context->saved_data["running_mean"] = terms.running_mean;
        context->saved_data["running_var"] = terms.running_var;
        context->saved_data["epsilon"] = terms.epsilon;
        return outputs;
    }

    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        auto const saved = context->get_saved_variables();
        std::array<bool, 3> const wanted{context->needs_input_grad(0), context->needs_input_grad(1),
                                         context->needs_input_grad(2)};
        auto [of_inputs, of_weight, of_bias] = at::native_batch_norm_backward(
            gradients[0], saved[0], saved[1], context->saved_data["running_mean"].toTensor(),
            context->saved_data["running_var"].toTensor(), saved[2], saved[3], /*train=*/true,
            context->saved_data["epsilon"].toDouble(), wanted);
        return {of_inputs, of_weight, of_bias, {}};
    }
};

} // namespace

at::Tensor batch_norm(at::Tensor const& inputs, BatchNormTerms const& terms) {
    if (!is_plain(inputs, terms)) {
        return at::batch_norm(inputs, terms.weight, terms.bias, terms.running_mean,
                              terms.running_var, /*training=*/true, terms.momentum, terms.epsilon,
                              /*cudnn_enabled=*/false);
    }
    RECORD_FUNCTION("lockstep::batch_norm",
                    std::vector<c10::IValue>({inputs, terms.weight, terms.bias}));
    return BatchNormFunction::apply(inputs, terms.weight, terms.bias, terms);
}

} // namespace lockstep::program

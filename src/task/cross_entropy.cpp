#include "cross_entropy.hpp"

#include <torch/nn/functional/loss.h>

#include "class_counts.hpp"
#include "class_weights.hpp"

namespace lockstep::task {

namespace functional = torch::nn::functional;

CrossEntropy::CrossEntropy(std::string const& weights, std::vector<std::int64_t> const& counts,
                           std::int64_t classes, double label_smoothing)
    : classes_(classes), label_smoothing_(label_smoothing) {
    if (weights != "none") {
        weights_ = task::class_weights(weights, counts, classes);
    }
}

/// Put there once: a copy in every step would wait for the device.
CrossEntropy::Weights CrossEntropy::weights_on(torch::Device device) const {
    std::lock_guard const lock(mutex_);
    auto& there = on_device_[device];
    if (!there.exact.defined()) {
        there.exact = torch::tensor(weights_, torch::kFloat64).to(device);
        there.rounded = there.exact.to(torch::kFloat32);
    }
    return there;
}

Loss CrossEntropy::training_loss(torch::Tensor const& logits, torch::Tensor const& labels) const {
    auto options = functional::CrossEntropyFuncOptions()
                       .label_smoothing(label_smoothing_)
                       .ignore_index(ignored_index());
    auto weight = static_cast<double>(labels.numel());
    if (!weights_.empty()) {
        auto const weights = weights_on(logits.device());
        auto const counted = ignores_ ? labels.masked_select(labels.ge(0)) : labels.flatten();
        options.weight(weights.rounded);
        weight = weights.exact.index_select(0, counted).sum().item<double>();
    } else if (ignores_) {
        weight = static_cast<double>(labels.ge(0).sum().item<std::int64_t>());
    }
    if (labels.dim() == 1) {
        options.reduction(torch::kSum);
        return {functional::cross_entropy(logits, labels, options), weight};
    }
    // Of places, torch's own sum has no fixed order on GPUs: run.deterministic would refuse it.
    options.reduction(torch::kNone);
    return {functional::cross_entropy(logits, labels, options).sum(), weight};
}

Tally CrossEntropy::evaluate(torch::Tensor const& logits, torch::Tensor const& labels) const {
    auto const losses = functional::cross_entropy(logits, labels,
                                                  functional::CrossEntropyFuncOptions()
                                                      .reduction(torch::kNone)
                                                      .ignore_index(ignored_index()));
    if (ignores_) {
        auto const counted = labels.ge(0);
        auto const truth = labels.masked_select(counted);
        return {losses.sum(torch::kFloat64).item<double>(), static_cast<double>(truth.numel()),
                class_counts_of(logits.argmax(1).masked_select(counted), truth, classes_)};
    }
    return {losses.sum(torch::kFloat64).item<double>(), static_cast<double>(labels.numel()),
            class_counts_of(logits.argmax(1), labels, classes_)};
}

torch::Tensor CrossEntropy::means(torch::Tensor const& logits, torch::Tensor const& labels,
                                  bool weighted) const {
    auto options =
        functional::CrossEntropyFuncOptions().reduction(torch::kNone).ignore_index(ignored_index());
    auto weights = labels.ge(0).to(torch::kFloat32);
    if (weighted && !weights_.empty()) {
        auto const rounded = weights_on(logits.device()).rounded;
        options.weight(rounded);
        weights = weights * rounded.index_select(0, labels.clamp_min(0).flatten()).view_as(weights);
    }
    auto const sums = functional::cross_entropy(logits, labels, options).flatten(1).sum(1);
    auto const whole = weights.flatten(1).sum(1);
    return torch::where(whole.gt(0), sums / whole, torch::zeros_like(sums));
}

} // namespace lockstep::task

#include "sync_batch_norm.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/nn/replica_sums.hpp"
#include "nn/to_device.hpp"

#include <torch/csrc/autograd/custom_function.h>

namespace lockstep::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Sums over all but the channels, in double on the host.
std::vector<double> by_channel(torch::Tensor const& values) {
    std::vector<std::int64_t> others{0};
    for (std::int64_t d = 2; d < values.dim(); ++d) {
        others.push_back(d);
    }
    auto const sums = to_host(values.to(torch::kFloat64).sum(others)).contiguous();
    return {sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel()};
}

/// A value for each channel, in the form in which it meets inputs [n, channels, …].
torch::Tensor for_channels(std::span<double const> values, torch::Tensor const& like) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
    shape[1] = static_cast<std::int64_t>(values.size());
    return torch::tensor(std::vector<double>(values.begin(), values.end()), torch::kFloat64)
        .to(like.device(), torch::kFloat32)
        .view(shape);
}

/// The link, as something that autograd can keep.
struct KeptLink : torch::CustomClassHolder {
    explicit KeptLink(std::shared_ptr<ReplicaLink> kept) : link(std::move(kept)) {}
    std::shared_ptr<ReplicaLink> link;
};

struct Statistics {
    double count = 0;             ///< elements of a channel over all replicas
    std::vector<double> mean;     ///< by channel
    std::vector<double> variance; ///< biased
};

Statistics statistics_of(torch::Tensor const& inputs, ReplicaLink const& link) {
    auto const channels = static_cast<std::size_t>(inputs.size(1));
    auto first = by_channel(inputs);
    first.push_back(static_cast<double>(inputs.numel()) / static_cast<double>(channels));
    link.sums->sum(link.replica, first);
    Statistics found;
    found.count = first.back();
    for (std::size_t c = 0; c < channels; ++c) {
        found.mean.push_back(found.count > 0 ? first[c] / found.count : 0);
    }
    auto const centred = inputs.to(torch::kFloat32) - for_channels(found.mean, inputs);
    found.variance = by_channel(centred.square());
    link.sums->sum(link.replica, found.variance);
    for (auto& variance : found.variance) {
        variance = found.count > 0 ? variance / found.count : 0;
    }
    return found;
}

/// Normalises as one big batch: with g the gradient of the normalised values and h those values,
/// the input's is (g - mean(g) - h mean(g h)) / deviation, with means over all replicas.
class Normalise : public torch::autograd::Function<Normalise> {
  public:
    static torch::Tensor forward(AutogradContext* context, torch::Tensor const& inputs,
                                 torch::Tensor const& mean, torch::Tensor const& deviation,
                                 double count, c10::intrusive_ptr<KeptLink> const& link) {
        auto normalised = (inputs.to(torch::kFloat32) - mean) / deviation;
        context->save_for_backward({normalised, deviation});
        context->saved_data["count"] = count;
        context->saved_data["link"] = torch::IValue::make_capsule(link);
        context->saved_data["type"] = static_cast<std::int64_t>(inputs.scalar_type());
        return normalised;
    }

    static variable_list backward(AutogradContext* context, variable_list gradients) {
        auto const saved = context->get_saved_variables();
        auto const& normalised = saved[0];
        auto const count = context->saved_data["count"].toDouble();
        auto const kept =
            c10::static_intrusive_pointer_cast<KeptLink>(context->saved_data["link"].toCapsule());
        auto const& link = *kept->link;
        auto const gradient = gradients[0].to(torch::kFloat32);
        auto sums = by_channel(gradient);
        auto const channels = sums.size();
        auto const products = by_channel(gradient * normalised);
        sums.insert(sums.end(), products.begin(), products.end());
        link.sums->sum(link.replica, sums);
        for (auto& sum : sums) {
            sum /= count > 0 ? count : 1;
        }
        auto const all = std::span<double const>(sums);
        auto const result = (gradient - for_channels(all.first(channels), gradient) -
                             normalised * for_channels(all.last(channels), gradient)) /
                            saved[1];
        auto const type = static_cast<torch::ScalarType>(context->saved_data["type"].toInt());
        return {result.to(type), {}, {}, {}, {}};
    }
};

} // namespace

std::pair<bool, torch::Tensor> synchronised(torch::Tensor const& inputs,
                                            program::BatchNormTerms const& norm,
                                            std::shared_ptr<ReplicaLink> const& link) {
    auto const found = statistics_of(inputs.detach(), *link);
    auto const mean = for_channels(found.mean, inputs);
    auto const deviation = (for_channels(found.variance, inputs) + norm.epsilon).sqrt();
    if (found.count > 0 && norm.running_mean.defined()) {
        torch::NoGradGuard const no_grad;
        // Unbiased, as torch keeps it.
        auto const correction = found.count > 1 ? found.count / (found.count - 1) : 1;
        torch::Tensor(norm.running_mean).lerp_(mean.flatten(), norm.momentum);
        torch::Tensor(norm.running_var)
            .lerp_(for_channels(found.variance, inputs).flatten() * correction, norm.momentum);
    }
    auto normalised =
        Normalise::apply(inputs, mean, deviation, found.count, c10::make_intrusive<KeptLink>(link));
    auto const shape = mean.sizes().vec();
    if (norm.weight.defined()) {
        normalised = normalised * norm.weight.view(shape) + norm.bias.view(shape);
    }
    return {found.count > 0, normalised};
}

SyncBatchNormImpl::SyncBatchNormImpl(std::int64_t channels, std::shared_ptr<ReplicaLink> link)
    : link_(std::move(link)) {
    weight = register_parameter("weight", torch::ones({channels}));
    bias = register_parameter("bias", torch::zeros({channels}));
    running_mean = register_buffer("running_mean", torch::zeros({channels}));
    running_var = register_buffer("running_var", torch::ones({channels}));
    num_batches_tracked = register_buffer("num_batches_tracked", torch::tensor(0, torch::kInt64));
}

torch::Tensor SyncBatchNormImpl::forward(torch::Tensor const& inputs) {
    program::BatchNormTerms const norm{weight, bias, running_mean, running_var};
    if (!is_training() || link_->sums == nullptr) {
        if (is_training()) {
            num_batches_tracked += 1;
        }
        return torch::batch_norm(inputs, weight, bias, running_mean, running_var, is_training(),
                                 norm.momentum, norm.epsilon, false);
    }
    auto const [is_new, normalised] = synchronised(inputs, norm, link_);
    if (is_new) {
        torch::NoGradGuard const no_grad;
        num_batches_tracked += 1;
    }
    return normalised;
}

} // namespace lockstep::nn

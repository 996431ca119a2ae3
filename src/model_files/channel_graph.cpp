#include "channel_graph.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"

#include <algorithm>

#include "channel_tracer.hpp"

namespace lockstep::train {

ChannelGraph::ChannelGraph(nn::Model& model, std::vector<std::int64_t> const& sample_shape,
                           torch::Device device) {
    // With gradients: a transposed weight is told from other constants by being a view of it.
    torch::AutoGradMode const with_gradients(true);
    nn::EvaluationMode const evaluation(model);
    auto shape = sample_shape;
    constexpr std::int64_t samples = 2;
    shape.insert(shape.begin(), samples);
    auto const recording = [&] {
        try {
            return nn::record_calls(
                [&](auto const& given) { return model.forward(nn::Fields(given.front())); },
                {torch::zeros(shape, device)}, ChannelTracer::known());
        } catch (Error const& error) {
            if (error.code() != ExitCode::usage) {
                throw;
            }
            throw Error(ExitCode::usage,
                        {"prune.pattern = channels cannot be used with this model",
                         concat("its channels cannot be followed through the forward method: ",
                                error.text().why),
                         "Change that part of the model, or set prune.pattern = unstructured"});
        }
    }();
    ChannelTracer tracer(*this, model);
    tracer.follow(recording);
    tracer.finish();
}

std::vector<std::int64_t> ChannelGraph::kept_indices(std::size_t tensor, std::size_t extent,
                                                     std::vector<char> const& kept) const {
    auto const& own = tensors_[tensor];
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < own.shape[extent]; ++i) {
        auto const& channels = own.channels[extent];
        auto const channel =
            channels.empty() ? ChannelTensor::none : channels[static_cast<std::size_t>(i)];
        if (channel == ChannelTensor::none || kept[static_cast<std::size_t>(channel)] != 0) {
            indices.push_back(i);
        }
    }
    return indices;
}

double ChannelGraph::macs(std::vector<char> const& kept) const {
    auto sum = fixed_macs_;
    for (auto const& product : products_) {
        auto macs = static_cast<double>(product.places);
        for (std::size_t extent = 0; extent < tensors_[product.weight].shape.size(); ++extent) {
            macs *= static_cast<double>(kept_indices(product.weight, extent, kept).size());
        }
        sum += macs;
    }
    return sum;
}

} // namespace lockstep::train

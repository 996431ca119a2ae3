#include "model_files/channel_pruning.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

#include "channel_choice.hpp"

namespace lockstep::train {

namespace {

torch::Device device_of(nn::Model const& model) {
    auto const parameters = model.parameters();
    return parameters.empty() ? torch::Device(torch::kCPU) : parameters.front().device();
}

std::span<float const> values_in(torch::Tensor const& scores) {
    return {scores.const_data_ptr<float>(), static_cast<std::size_t>(scores.numel())};
}

} // namespace

bool ChannelRemoval::is_any() const {
    return std::ranges::find(kept_, 0) != kept_.end();
}

torch::Tensor ChannelRemoval::rest_of(std::string const& name, torch::Tensor const& values) const {
    auto const& tensors = graph_.tensors();
    auto const found = std::ranges::find(tensors, name, &ChannelTensor::name);
    auto rest = values;
    for (std::size_t d = 0; found != tensors.end() && d < found->shape.size(); ++d) {
        auto const indices =
            graph_.kept_indices(static_cast<std::size_t>(found - tensors.begin()), d, kept_);
        if (static_cast<std::int64_t>(indices.size()) < found->shape[d]) {
            rest = rest.index_select(static_cast<std::int64_t>(d),
                                     torch::tensor(indices).to(values.device()));
        }
    }
    return rest;
}

std::string ChannelRemoval::text(double whole) const {
    auto const gone = std::ranges::count(kept_, 0);
    auto const share = std::llround(1000 * graph_.macs(kept_) / whole);
    return concat(gone, " of ", kept_.size(), " groups of channels removed: ", share / 10, ".",
                  share % 10, " % of the multiply-adds remain");
}

ChannelPruning::ChannelPruning(config::Prune const& prune, nn::Model& whole,
                               std::vector<std::int64_t> sample_shape)
    : prune_(prune), schedule_(prune), sample_shape_(std::move(sample_shape)) {
    ChannelGraph const graph(whole, sample_shape_, device_of(whole));
    whole_ = graph.macs();
    if (whole_ == 0) {
        throw Error(ExitCode::usage,
                    {"prune.pattern = channels cannot be used with this model",
                     "its forward method uses no convolution and no fully connected layer whose "
                     "channels could be removed",
                     "Set prune.pattern = unstructured, or choose another model"});
    }
    auto const layout = Layout::of(whole);
    auto const scores = torch::zeros({layout.size}); // whether a target can be met is no question
    kept_channels(prune_, graph, layout, values_in(scores), // of scores
                  (1 - schedule_.share_at(schedule_.last())) * whole_);
}

ChannelRemoval ChannelPruning::choose(nn::Model& model, Layout const& layout,
                                      torch::Tensor const& scores, std::int64_t steps) const {
    ChannelGraph graph(model, sample_shape_, device_of(model));
    auto const squares = prune_.score == "magnitude" ? scores.square() : scores;
    auto kept = kept_channels(prune_, graph, layout, values_in(squares),
                              (1 - schedule_.share_at(steps)) * whole_);
    return {std::move(graph), std::move(kept)};
}

ChannelRemoval ChannelPruning::one_of_each(nn::Model& model, Layout const& layout) const {
    ChannelGraph graph(model, sample_shape_, device_of(model));
    auto kept = all_but_one_of_each(prune_, graph, layout);
    return {std::move(graph), std::move(kept)};
}

} // namespace lockstep::train

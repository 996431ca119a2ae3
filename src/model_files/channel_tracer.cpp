#include "channel_tracer.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::train {

ChannelTracer::ChannelTracer(ChannelGraph& graph, nn::Model const& model)
    : graph_(graph), takes_sizes_(model.takes_sizes_from_tensors()) {
    auto const add = [&](auto const& item, bool trains) {
        ChannelTensor tensor{item.key(), trains, item.value().sizes().vec(), {}};
        tensor.channels.resize(tensor.shape.size());
        graph_.tensors_.push_back(std::move(tensor));
    };
    for (auto const& item : model.named_parameters()) {
        parameters_[item.value().unsafeGetTensorImpl()] = graph_.tensors_.size();
        add(item, true);
    }
    for (auto const& item : model.named_buffers()) {
        add(item, false);
    }
}

void ChannelTracer::follow(nn::Recording const& recording) {
    values_.push_back({recording.inputs.front().sizes().vec(), {}, 0});
    for (auto const& call : recording.calls) {
        auto const found = rules().find(call.name);
        auto const before = values_.size();
        auto const is_tied = [&](std::size_t at) { return all_tied(input(call, at).channels); };
        std::vector<std::size_t> free(call.values.size()); // inputs that are not tied yet
        std::iota(free.begin(), free.end(), 0);
        std::erase_if(free, is_tied);
        (this->*(found == rules().end() ? &ChannelTracer::unknown : found->second))(call);
        if (std::ranges::any_of(free, is_tied)) {
            tied(call);
        }
        while (values_.size() < before + call.results.size()) { // of which nothing is known
            values_.push_back(
                {call.results[values_.size() - before].sizes().vec(), std::vector<int>{}, 0});
        }
    }
    keep(values_.at(recording.output).channels);
}

int ChannelTracer::fresh() {
    parent_.push_back(static_cast<int>(parent_.size()));
    stays_.push_back(0);
    return parent_.back();
}

std::vector<int> ChannelTracer::fresh(std::int64_t count) {
    std::vector<int> channels(static_cast<std::size_t>(count));
    std::ranges::generate(channels, [this] { return fresh(); });
    return channels;
}

int ChannelTracer::root(int channel) {
    while (parent_[static_cast<std::size_t>(channel)] != channel) {
        auto& parent = parent_[static_cast<std::size_t>(channel)];
        parent = parent_[static_cast<std::size_t>(parent)];
        channel = parent;
    }
    return channel;
}

/// Whether none can go without all others.
bool ChannelTracer::all_tied(std::vector<int> const& channels) {
    return std::ranges::all_of(
        channels, [&](int channel) { return root(channel) == root(channels.front()); });
}

void ChannelTracer::tie(int a, int b) {
    a = root(a);
    b = root(b);
    auto const first = static_cast<std::size_t>(std::min(a, b));
    auto const second = static_cast<std::size_t>(std::max(a, b));
    parent_[second] = static_cast<int>(first);
    stays_[first] = stays_[first] != 0 || stays_[second] != 0 ? 1 : 0;
}

void ChannelTracer::tie(std::vector<int> const& some, std::vector<int> const& others) {
    for (std::size_t i = 0; i < some.size(); ++i) {
        tie(some[i], others.at(i));
    }
}

void ChannelTracer::keep(std::vector<int> const& channels) {
    for (auto const channel : channels) {
        stays_[static_cast<std::size_t>(root(channel))] = 1;
    }
}

void ChannelTracer::give(nn::RecordedCall const& call, std::vector<int> channels,
                         std::int64_t axis) {
    values_.push_back({call.results.front().sizes().vec(), std::move(channels), axis});
}

/// The value that an argument is.
ChannelTracer::Value const& ChannelTracer::input(nn::RecordedCall const& call,
                                                 std::size_t at) const {
    static Value const other; // it depends on no input
    auto const number = call.values.at(at);
    return number ? values_.at(*number) : other;
}

std::optional<std::size_t> ChannelTracer::tensor_of(c10::IValue const& argument) const {
    if (!is_there(argument)) {
        return std::nullopt;
    }
    auto const found = parameters_.find(argument.toTensor().unsafeGetTensorImpl());
    return found == parameters_.end() ? std::nullopt : std::optional(found->second);
}

/// Returns the index of the parameter that an argument is the transpose of, if any.
std::optional<std::size_t> ChannelTracer::transposed_of(c10::IValue const& argument) const {
    if (!is_there(argument) || !argument.toTensor().is_view()) {
        return std::nullopt;
    }
    auto const tensor = argument.toTensor();
    auto const whole = tensor._base();
    auto const found = parameters_.find(whole.unsafeGetTensorImpl());
    bool const fits = found != parameters_.end() && whole.dim() == 2 && tensor.dim() == 2 &&
                      tensor.size(0) == whole.size(1) && tensor.size(1) == whole.size(0) &&
                      tensor.stride(0) == whole.stride(1) && tensor.stride(1) == whole.stride(0);
    return fits ? std::optional(found->second) : std::nullopt;
}

/// A tensor that two layers share ties what both have there.
void ChannelTracer::label(std::size_t tensor, std::size_t extent,
                          std::vector<int> const& channels) {
    auto& own = graph_.tensors_[tensor].channels.at(extent);
    if (own.empty()) {
        own = channels;
    } else {
        tie(own, channels);
    }
}

void ChannelTracer::finish() {
    std::map<int, std::size_t> numbers; // of roots
    for (std::size_t tensor = 0; tensor < graph_.tensors_.size(); ++tensor) {
        auto& own = graph_.tensors_[tensor];
        for (std::size_t extent = 0; extent < own.channels.size(); ++extent) {
            std::int64_t index = 0;
            for (auto& channel : own.channels[extent]) {
                auto const found = root(channel);
                if (stays_[static_cast<std::size_t>(found)] != 0) {
                    channel = ChannelTensor::none;
                } else {
                    auto const [at, is_new] = numbers.try_emplace(found, graph_.channels_.size());
                    if (is_new) {
                        graph_.channels_.emplace_back();
                    }
                    graph_.channels_[at->second].places.push_back({tensor, extent, index});
                    channel = static_cast<int>(at->second);
                }
                ++index;
            }
        }
    }
    std::map<std::set<std::pair<std::size_t, std::size_t>>, std::size_t> layers;
    for (auto& channel : graph_.channels_) {
        std::set<std::pair<std::size_t, std::size_t>> extents;
        for (auto const& place : channel.places) {
            extents.emplace(place.tensor, place.extent);
        }
        channel.layer = layers.try_emplace(extents, layers.size()).first->second;
    }
    graph_.layers_ = layers.size();
}

} // namespace lockstep::train

#include "lockstep/train/layout.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

} // namespace

Layout Layout::of(nn::Model const& model) {
    Layout layout;
    auto const parameters = model.named_parameters();
    for (auto item = parameters.end(); item != parameters.begin();) {
        --item;
        auto const& tensor = item->value();
        layout.entries.push_back({item->key(), tensor.sizes().vec(), layout.size, tensor.numel()});
        layout.size += rounded_up(tensor.numel(), arena_unit);
        layout.parameters += tensor.numel();
    }
    layout.size = rounded_up(layout.size, grain);
    return layout;
}

std::vector<std::int64_t> Layout::slices(int ranks) const {
    std::vector<std::int64_t> bounds;
    for (std::int64_t rank = 0; rank <= ranks; ++rank) {
        bounds.push_back(grains() * rank / ranks * grain);
    }
    return bounds;
}

std::vector<h5::View> Layout::views(std::string const& prefix, std::string const& source) const {
    std::vector<h5::View> views;
    for (auto const& entry : entries) {
        views.push_back({prefix + "/" + path_of(entry.name), source,
                         static_cast<std::uint64_t>(entry.first),
                         h5::Shape(entry.shape.begin(), entry.shape.end())});
    }
    return views;
}

std::string path_of(std::string name) {
    std::replace(name.begin(), name.end(), '.', '/');
    return name;
}

} // namespace lockstep::train

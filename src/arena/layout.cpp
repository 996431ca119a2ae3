#include "arena/layout.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <set>

namespace lockstep::train {

namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

} // namespace

Layout Layout::of(nn::Model const& model) {
    check_types(model);
    Layout layout;
    auto const named = model.named_parameters();
    std::set<void const*> seen;
    std::vector<std::pair<std::string, torch::Tensor>> parameters;
    for (auto const& item : named) {
        if (seen.insert(item.value().unsafeGetTensorImpl()).second) {
            parameters.emplace_back(item.key(), item.value());
        }
    }
    std::reverse(parameters.begin(), parameters.end());
    for (auto const& [name, tensor] : parameters) {
        layout.entries.push_back({name, tensor.sizes().vec(), layout.size, tensor.numel(),
                                  tensor.requires_grad(), c10::toString(tensor.scalar_type())});
        layout.size += rounded_up(tensor.numel(), arena_unit);
        layout.parameters += tensor.requires_grad() ? tensor.numel() : 0;
    }
    layout.size = rounded_up(layout.size, reduction_block);
    return layout;
}

std::int64_t Layout::frozen() const {
    std::int64_t count = 0;
    for (auto const& entry : entries) {
        count += entry.trained ? 0 : entry.count;
    }
    return count;
}

std::vector<std::size_t> Layout::thaw(std::vector<std::string> const& names) {
    std::vector<std::size_t> thawed;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (std::ranges::find(names, entries[i].name) != names.end()) {
            entries[i].trained = true;
            parameters += entries[i].count;
            thawed.push_back(i);
        }
    }
    return thawed;
}

std::string Layout::text() const {
    std::string text;
    for (auto const& entry : entries) {
        text += concat(entry.name, " [");
        for (auto const extent : entry.shape) {
            text += concat(" ", extent);
        }
        text += concat(" ] ", entry.type, entry.trained ? "\n" : " frozen\n");
    }
    return text;
}

void Layout::check_types(nn::Model const& model) {
    for (auto const& item : model.named_parameters()) {
        auto const type = item.value().scalar_type();
        if (type != torch::kFloat32 && type != torch::kBFloat16 && type != torch::kFloat16) {
            throw Error(ExitCode::usage,
                        {concat("parameter ", item.key(), " is of type ", c10::toString(type)),
                         "parameters must be float32, bfloat16 or float16",
                         c10::isComplexType(type)
                             ? "Store the parameter as pairs of float32, and use "
                               "torch.view_as_complex in the forward method"
                             : "Convert the parameter to one of these types"});
        }
    }
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

#include "step/merged_parameters.hpp"

#include "checkpoint/adapter.hpp"

#include <map>
#include <span>
#include <string>

namespace lockstep::train {

torch::Tensor merged_parameters(Layout const& layout, Arena const& arena,
                                checkpoint::Record const& record) {
    auto parameters = arena.parameters().cpu();
    auto const scale = record.reals.find(checkpoint::adapter_scale);
    if (scale == record.reals.end()) {
        return parameters;
    }
    parameters = parameters.clone();
    std::map<std::string, ParameterRange const*> entries;
    for (auto const& entry : layout.entries) {
        entries.emplace(entry.name, &entry);
    }
    auto const values = [&](ParameterRange const& entry) {
        return std::span(parameters.data_ptr<float>() + entry.first,
                         static_cast<std::size_t>(entry.count));
    };
    for (auto const& entry : layout.entries) {
        auto const a = entries.find(adapter_name(entry.name, adapter_a));
        auto const b = entries.find(adapter_name(entry.name, adapter_b));
        if (a != entries.end() && b != entries.end()) {
            checkpoint::merge_adapter(values(entry), values(*a->second), values(*b->second),
                                      static_cast<std::size_t>(entry.shape.front()), scale->second);
        }
    }
    return parameters;
}

} // namespace lockstep::train

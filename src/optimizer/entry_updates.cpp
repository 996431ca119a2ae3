#include "optimizer/entry_updates.hpp"

#include "base/name_patterns.hpp"
#include "base/text.hpp"
#include "config/parameter_groups.hpp"
#include "lockstep/base/error.hpp"
#include "optimizer/layer_depths.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lockstep::train {

namespace {

bool fits(std::string const& pattern, ParameterRange const& entry) {
    bool const is_vector = entry.shape.size() < 2;
    bool const is_bias = is_vector && entry.name.ends_with("bias");
    if (pattern == "biases") {
        return is_bias;
    }
    if (pattern == "norms") {
        return is_vector && !is_bias;
    }
    return fits_pattern(entry.name, pattern);
}

void exempt_from_decay(std::string const& no_decay, Layout const& layout,
                       std::vector<EntryUpdate>& updates) {
    for (auto const& pattern : split(no_decay, ',')) {
        bool found = pattern == "biases" || pattern == "norms" || pattern == "none";
        for (std::size_t i = 0; i < layout.entries.size(); ++i) {
            if (fits(pattern, layout.entries[i])) {
                updates[i].exempt = true;
                found = true;
            }
        }
        if (!found) {
            throw Error(
                ExitCode::usage,
                {concat("optimizer.no-decay = ", pattern, " matches no parameter"),
                 concat("parameters have names such as ", layout.entries.back().name),
                 "Set optimizer.no-decay to biases, norms, none, or patterns such as *.weight"});
        }
    }
}

std::vector<std::string> names_of(Layout const& layout) {
    std::vector<std::string> names;
    for (auto const& entry : layout.entries) {
        names.push_back(entry.name);
    }
    return names;
}

/// The first group whose pattern a name fits counts.
void take_groups(std::string const& text, Layout const& layout, std::vector<EntryUpdate>& updates) {
    auto const groups = config::parameter_groups(text).value(); // the deck was checked
    std::vector<bool> settled(updates.size(), false);
    for (auto const& group : groups) {
        bool found = false;
        for (std::size_t i = 0; i < updates.size(); ++i) {
            if (!fits_pattern(layout.entries[i].name, group.pattern)) {
                continue;
            }
            found = true;
            if (!settled[i]) {
                settled[i] = true;
                updates[i].rate = group.rate;
                updates[i].decay = group.decay.value_or(updates[i].decay);
            }
        }
        if (!found) {
            throw Error(ExitCode::usage,
                        {concat("optimizer.groups: ", group.pattern, " matches no parameter"),
                         concat("parameters have ", names_text(names_of(layout))),
                         suggested_pattern(group.pattern, names_of(layout),
                                           "Correct the pattern, or remove the group")});
        }
    }
}

} // namespace

std::vector<EntryUpdate> entry_updates(config::Optimizer const& options, Layout const& layout) {
    std::vector<EntryUpdate> updates(layout.entries.size(), {.decay = options.weight_decay});
    take_groups(options.groups, layout, updates);
    exempt_from_decay(options.no_decay, layout, updates);
    if (options.layer_decay != 1) {
        auto const depths = layer_depths(layout);
        for (std::size_t i = 0; i < updates.size(); ++i) {
            updates[i].rate *= std::pow(options.layer_decay, depths.last - depths.of_entry[i]);
        }
    }
    for (auto& update : updates) {
        update.decay = update.exempt ? 0 : update.decay;
    }
    return updates;
}

std::vector<std::string> entry_updates_text(config::Optimizer const& options,
                                            Layout const& layout) {
    if (options.groups == "none" && options.layer_decay == 1) {
        return {};
    }
    struct Kind {
        EntryUpdate update;
        std::int64_t tensors = 0;
        std::int64_t parameters = 0;
        std::string example;
    };
    std::vector<Kind> kinds;
    auto const updates = entry_updates(options, layout);
    for (std::size_t i = updates.size(); i-- > 0;) { // in the order of the model
        auto const& entry = layout.entries[i];
        if (!entry.trained) {
            continue;
        }
        auto kind = std::ranges::find(kinds, updates[i], &Kind::update);
        if (kind == kinds.end()) {
            kind = kinds.insert(kinds.end(), {.update = updates[i], .example = entry.name});
        }
        ++kind->tensors;
        kind->parameters += entry.count;
    }
    std::vector<std::string> lines;
    for (auto const& kind : kinds) {
        lines.push_back(concat("learning rate x ", kind.update.rate, ", weight decay ",
                               kind.update.decay, ": ", amount_of(kind.tensors, "tensor"), " (",
                               count_text(kind.parameters, "parameter"), ") such as ",
                               kind.example));
    }
    return lines;
}

} // namespace lockstep::train

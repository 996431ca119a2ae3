#include "exported_weights.hpp"

#include "base/text.hpp"
#include "checkpoint/safetensors.hpp"
#include "comm/rounding.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace lockstep::app {

namespace {

/// How the weights are rounded.
comm::Rounding rounding_of(std::string const& type) {
    if (type == "f32") {
        return comm::Rounding::none;
    }
    return type == "f16" ? comm::Rounding::fp16 : comm::Rounding::bf16;
}

/// The name of a model or a task; of a plug-in without the place of its library.
std::string without_place(std::string const& name) {
    return name.starts_with("plugin:") ? concat("plugin:", name.substr(name.rfind(':') + 1)) : name;
}

constexpr std::array of_samples{"data.inputs",   "data.targets", "data.sample-per-file",
                                "data.sequence", "data.mask",    "data.normalise-targets"};

/// The keys that say what a model computes with its weights, which their shapes do not tell, and
/// what its inputs and outputs are; no path of this host.
std::string keys_of_model(config::Deck const& deck) {
    nlohmann::json keys = nlohmann::json::object();
    for (auto const& [key, value] : deck.model.own) {
        if (key != "file" && key != "operators" && key != "compiled") {
            keys[concat("model.", key)] = value;
        }
    }
    keys["model.name"] = without_place(deck.model.name);
    for (auto const& [key, value] : deck.task.own) {
        keys[concat("task.", key)] = value;
    }
    keys["task.kind"] = without_place(deck.task.kind);
    for (auto const& [key, value, at_resume] : config::settings(deck)) {
        if (std::ranges::find(of_samples, key) != of_samples.end() && !value.empty()) {
            keys[key] = value;
        }
    }
    return keys.dump();
}

} // namespace

std::optional<config::Deck> deck_in(checkpoint::Record const& record) {
    if (record.deck.empty()) {
        return std::nullopt;
    }
    try {
        config::DeckSource source;
        source.read_printed(record.deck, "the deck in the file");
        return source.parse();
    } catch (Error const&) {
        return std::nullopt;
    }
}

void export_weights(std::filesystem::path const& out, checkpoint::Weights const& weights,
                    std::string const& type) {
    auto const deck = deck_in(weights.record());
    checkpoint::write_safetensors(out, weights, rounding_of(type),
                                  deck ? keys_of_model(*deck) : "");
}

} // namespace lockstep::app

#include "model_files/model_changes.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/noted_keys.hpp"
#include "checkpoint/weights.hpp"
#include "config/changes.hpp"
#include "lockstep/nn/registry.hpp"
#include "model_files/stored_deck.hpp"
#include "nn/find_kind.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace lockstep::train {

namespace {

/// Numbers and lists may be written in several ways.
std::string plain(std::string const& value) {
    std::vector<std::string> parts;
    for (auto const& part : split(value, ',')) {
        auto const number = number_of<double>(part);
        parts.push_back(number ? concat(*number) : part);
    }
    return joined(parts, ", ");
}

constexpr char const* layout = "model.layout";
constexpr char const* observation_scale = "observation-scale"; ///< of a task, but on the inputs

std::map<std::string, std::string> values_of(config::Deck const& deck) {
    auto const& model = deck.model;
    std::map<std::string, std::string> values;
    values["model.name"] = nn::names_plugin(model.name) ? "a plug-in" : model.name;
    for (auto const& kind : nn::model_kinds()) {
        for (auto const& key : kind.keys) {
            if (kind.name == model.name) {
                values[concat("model.", key.name)] = plain(key.default_value);
            }
        }
    }
    for (auto const& [key, value] : model.own) {
        values[concat("model.", key)] = plain(value);
    }
    for (auto const* key : {"dropout", "compiled", "operators", "file"}) {
        values.erase(concat("model.", key));
    }
    auto const scale = deck.task.own.find(observation_scale);
    values[concat("task.", observation_scale)] =
        scale != deck.task.own.end() ? plain(scale->second) : "1";
    return values;
}

/// The values that weights without a deck were trained with, as far as they know: of channels with
/// means, on which side they are.
std::map<std::string, std::string> values_known_of(data::Facts const& facts,
                                                   std::map<std::string, std::string> values) {
    if (auto const found = values.find(layout); found != values.end() && facts.mean.size() > 1) {
        found->second = facts.channels_last ? "channels-last" : "channels-first";
    }
    return values;
}

/// The model of weights without a deck that note its keys.
config::Deck noted_model(std::map<std::string, std::string> const& keys) {
    config::Deck deck;
    for (auto const& [key, value] : keys) {
        auto const dot = key.find('.') + 1;
        if (!key.starts_with("data.")) {
            (key.starts_with("task.") ? deck.task.own : deck.model.own)[key.substr(dot)] = value;
        }
    }
    deck.model.name = deck.model.own.extract("name").mapped();
    return deck;
}

} // namespace

std::string model_changes(config::Deck const& deck, checkpoint::VerifiedFile const& file) {
    auto const record = checkpoint::open_weights(file)->record();
    auto const now = values_of(deck);
    auto const noted = checkpoint::noted_keys(record, file.path());
    auto const before = !record.deck.empty() ? values_of(stored_deck(record, file.path()))
                        : !noted.empty()     ? values_of(noted_model(noted))
                                             : values_known_of(facts_of(record, file.path()), now);
    return joined(config::changes(before, now), "; ");
}

std::string warning_of_model_changes(config::Deck const& deck,
                                     checkpoint::VerifiedFile const& file) {
    auto const changes = model_changes(deck, file);
    return changes.empty() ? changes
                           : concat("warning: the weights in ", file.path().string(),
                                    " were trained with another model: ", changes);
}

} // namespace lockstep::train

#include "train/model_changes.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "config/changes.hpp"
#include "lockstep/nn/registry.hpp"
#include "nn/find_kind.hpp"

#include <map>
#include <vector>

#include "stored_deck.hpp"

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

std::map<std::string, std::string> values_of(config::Model const& model) {
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
    return values;
}

} // namespace

std::string model_changes(config::Deck const& deck, checkpoint::VerifiedFile const& file) {
    auto const record = checkpoint::open_weights(file)->record();
    return record.deck.empty()
               ? std::string()
               : joined(config::changes(values_of(stored_deck(record, file.path()).model),
                                        values_of(deck.model)),
                        "; ");
}

std::string warning_of_model_changes(config::Deck const& deck,
                                     checkpoint::VerifiedFile const& file) {
    auto const changes = model_changes(deck, file);
    return changes.empty() ? changes
                           : concat("warning: the weights in ", file.path().string(),
                                    " were trained with another model: ", changes);
}

} // namespace lockstep::train

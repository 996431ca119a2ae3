#include "lockstep/model_files/load_weights.hpp"

#include "arena/layout.hpp"
#include "base/adapter_names.hpp"
#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "model_files/common_weights.hpp"
#include "model_files/narrow_as_noted.hpp"
#include "model_files/stored_tensor.hpp"
#include "nn/shapes.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace lockstep::train {

namespace {

/// ": runs/x/deck.ini", where the file lies in a run's directory; else empty.
std::string deck_of_run(std::filesystem::path const& file) {
    std::error_code none;
    for (auto const& directory : {file.parent_path(), file.parent_path().parent_path()}) {
        if (auto const deck = directory / "deck.ini"; std::filesystem::exists(deck, none)) {
            return concat(": ", deck.string());
        }
    }
    return "";
}

OtherModel does_not_fit(torch::Tensor const& tensor, std::string const& name,
                        StoredTensor const& stored, checkpoint::Weights const& weights) {
    h5::Shape const shape(tensor.sizes().begin(), tensor.sizes().end());
    auto const found = stored.entry == nullptr      ? "no such array"
                       : stored.entry->name == name ? h5::shape_text(stored.entry->shape)
                                                    : stored.text();
    return OtherModel({concat(weights.path().string(), " does not fit the deck's model"),
                       concat("the model needs ", h5::shape_text(shape), " for model/",
                              path_of(name), ", but the file has ", found),
                       concat("Name another file, or name the deck that the model in this file was "
                              "trained with",
                              deck_of_run(weights.path()))});
}

/// The differences that config.json beside the file tells of; without that file: nothing.
void require_no_contradictions(nn::Model const& model, checkpoint::Weights const& weights) {
    auto const config = weights.path().parent_path() / "config.json";
    if (!std::filesystem::exists(config)) {
        return;
    }
    std::vector<std::string> says;
    std::vector<std::string> set;
    std::vector<std::string> without_key;
    for (auto const& found : model.contradictions(config)) {
        says.push_back(found.says);
        (found.set.empty() ? without_key : set)
            .push_back(found.set.empty() ? found.says : found.set);
    }
    if (!says.empty()) {
        throw Error(
            ExitCode::usage,
            {concat(weights.path().string(), " holds the weights of another model than the deck's"),
             concat("config.json says ", joined(says, ", ")),
             without_key.empty()
                 ? concat("Set ", joined(set, ", "))
                 : concat("Choose other weights: no key of the deck corresponds to ",
                          joined(without_key, ", "))});
    }
}

/// Biases are left out by a model without them, and all else would still fit.
void require_no_other_biases(nn::Model const& model, checkpoint::Weights const& weights) {
    constexpr std::string_view weight = ".weight";
    auto const parameters = model.named_parameters();
    for (auto const& item : parameters) {
        auto const& name = item.key();
        if (!name.ends_with(weight)) {
            continue;
        }
        auto const bias = concat(name.substr(0, name.size() - weight.size()), ".bias");
        if (parameters.contains(bias)) {
            continue;
        }
        for (auto const& source : model.other_names(bias)) {
            if (weights.find(source.name) != nullptr) {
                throw Error(
                    ExitCode::usage,
                    {concat(weights.path().string(),
                            " holds the weights of another model than the deck's"),
                     concat("it has ", source.name, ", but the model has no model/", path_of(bias)),
                     "Set model.bias = qkv if only queries, keys and values have a bias, otherwise "
                     "model.bias = true. If norms have a bias, set model.norm = layer as well"});
            }
        }
    }
}

/// A parameter that layers share may be in the file under several of its names. Adds those that
/// were not read to `known`.
void require_same_values(nn::Model const& model, checkpoint::Weights const& weights,
                         std::set<std::string>& known, CommonWeights const& common) {
    for (auto const& item : model.named_parameters()) {
        if (std::ranges::find(common.fresh, item.key(), &CommonWeights::Fresh::name) !=
            common.fresh.end()) {
            continue;
        }
        h5::Shape const shape(item.value().sizes().begin(), item.value().sizes().end());
        for (auto const& source : model.other_names(item.key())) {
            auto const* const entry = weights.find(source.name);
            if (entry == nullptr || source.transposed || source.parts != 1 ||
                entry->shape != shape || !known.insert(entry->name).second) {
                continue;
            }
            auto const values = item.value().detach().cpu();
            if (!torch::equal(values_of(weights, *entry).to(values.scalar_type()), values)) {
                throw OtherModel(
                    {concat(weights.path().string(), " does not fit the deck's model"),
                     concat("the file has different values for ", path_of(item.key()), " and ",
                            path_of(entry->name), ", which are one parameter of the model"),
                     "Name another file, or save a model whose layers do not share this "
                     "parameter"});
            }
        }
    }
}

/// Whether another program gave a file's tensors their names.
bool has_other_names(nn::Model const& model, checkpoint::Weights const& weights) {
    auto const parameters = model.named_parameters();
    return std::ranges::any_of(parameters, [&](auto const& item) {
        return weights.find(item.key()) == nullptr &&
               std::ranges::any_of(model.other_names(item.key()), [&](auto const& source) {
                   return weights.find(source.name) != nullptr;
               });
    });
}

/// Lets an adapter add nothing: a file has those of its run in its weights.
void reset_adapter(std::string const& name, torch::Tensor const& part) {
    if (name.ends_with(adapter_b)) {
        part.detach().zero_();
    }
}

/// What the model lacks of a file, and the file of a model: `refuse` is called for each tensor of
/// the model that the file does not have.
template <class Refuse>
CommonWeights load(nn::Model& model, checkpoint::VerifiedFile const& file, Refuse const& refuse) {
    torch::NoGradGuard const no_grad;
    auto const weights = checkpoint::open_weights(file);
    if (weights->quantised()) {
        throw Error(ExitCode::usage, {concat(file.path().string(), " is a quantised model"),
                                      "a model with int8 layers can only be evaluated and exported",
                                      "Name the file from which the quantised model was made"});
    }
    narrow_as_noted(model, weights->record());
    if (has_other_names(model, *weights)) {
        require_no_contradictions(model, *weights);
        require_no_other_biases(model, *weights);
    }
    CommonWeights common;
    std::set<std::string> known;
    auto const take = [&](torch::Tensor const& tensor, std::string const& name) {
        auto const stored = stored_tensor(tensor, name, model, *weights);
        if (stored.fits) {
            fill(tensor, stored, *weights);
            known.insert(stored.entry->name);
            common.taken.push_back(name);
            common.values += tensor.numel();
        } else {
            refuse(tensor, name, stored, *weights);
            common.fresh.push_back({name, stored.text()});
        }
    };
    auto const parameters = model.named_parameters();
    std::set<void const*> filled; // of those that layers share, a file may have one name only
    for (auto const& item : parameters) {
        if (weights->find(item.key()) != nullptr) {
            filled.insert(item.value().unsafeGetTensorImpl());
        }
    }
    for (auto const& item : parameters) {
        if (is_of_adapter(item.key())) {
            reset_adapter(item.key(), item.value());
            continue;
        }
        if (weights->find(item.key()) != nullptr ||
            filled.insert(item.value().unsafeGetTensorImpl()).second) {
            take(item.value().detach(), item.key());
        }
    }
    common.parameters = common.taken.size();
    for (auto const& item : model.named_buffers()) {
        take(item.value(), item.key());
    }
    require_same_values(model, *weights, known, common);
    for (auto const& entry : weights->entries()) {
        if (!known.contains(entry.name)) {
            common.left_over.push_back(entry.name);
        }
    }
    return common;
}

} // namespace

void narrow_as_noted(nn::Model& model, checkpoint::Record const& record) {
    if (auto const found = record.notes.find(checkpoint::shapes_note);
        found != record.notes.end()) {
        nn::narrow(model, found->second);
    }
}

CommonWeights load_common_weights(nn::Model& model, checkpoint::VerifiedFile const& file) {
    return load(model, file, [](auto const&...) {}); // is told, not refused
}

std::vector<std::string> load_weights(nn::Model& model, checkpoint::VerifiedFile const& file) {
    auto found = load(model, file,
                      [](torch::Tensor const& tensor, std::string const& name,
                         StoredTensor const& stored, checkpoint::Weights const& weights) {
                          throw does_not_fit(tensor, name, stored, weights);
                      });
    return std::move(found.left_over);
}

} // namespace lockstep::train

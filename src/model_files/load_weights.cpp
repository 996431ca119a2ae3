#include "lockstep/model_files/load_weights.hpp"

#include "arena/layout.hpp"
#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "model_files/narrow_as_noted.hpp"
#include "nn/shapes.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

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

/// A single value has one dimension in some files and none in others.
h5::Shape without_single(h5::Shape const& shape) {
    return shape == h5::Shape{1} ? h5::Shape{} : shape;
}

torch::Tensor read(checkpoint::Weights const& weights, checkpoint::Weights::TensorInfo const& entry,
                   h5::Shape const& shape) {
    std::vector<std::int64_t> const sizes(shape.begin(), shape.end());
    auto const host =
        torch::empty(sizes, entry.type == h5::Type::i64 ? torch::kInt64 : torch::kFloat32);
    weights.read(entry, {static_cast<std::byte*>(host.mutable_data_ptr()), host.nbytes()});
    return host;
}

/// The parameter, of a file that has it in another form.
torch::Tensor taken_from(torch::Tensor whole, nn::WeightSource const& source) {
    if (source.transposed) {
        whole = whole.t();
    }
    return whole.chunk(source.parts, 0).at(static_cast<std::size_t>(source.part));
}

/// Returns the name that the values have in the file.
std::string fill(torch::Tensor const& tensor, std::string const& name, nn::Model const& model,
                 checkpoint::Weights const& weights) {
    h5::Shape const shape(tensor.sizes().begin(), tensor.sizes().end());
    auto const* entry = weights.find(name);
    if (entry == nullptr) {
        for (auto const& source : model.other_names(name)) {
            auto const* const other = weights.find(source.name);
            auto const dimensions = static_cast<std::int64_t>(other ? other->shape.size() : 0);
            if (other == nullptr || dimensions != tensor.dim() || dimensions == 0 ||
                (source.transposed && dimensions != 2)) {
                continue;
            }
            auto const out = other->shape[source.transposed ? 1 : 0];
            if (out % static_cast<std::uint64_t>(source.parts) != 0) {
                continue;
            }
            auto const values = taken_from(read(weights, *other, other->shape), source);
            if (values.sizes() == tensor.sizes()) {
                torch::Tensor(tensor).copy_(values);
                return source.name;
            }
            entry = other; // to be told of
        }
    }
    bool const fits = entry != nullptr && without_single(entry->shape) == without_single(shape) &&
                      entry->name == name;
    if (!fits) {
        throw Error(
            ExitCode::data,
            {concat(weights.path().string(), " does not fit the deck's model"),
             concat("the model needs ", h5::shape_text(shape), " for model/", path_of(name),
                    ", but the file has ",
                    entry == nullptr ? "no such array"
                                     : concat(entry->name == name ? "" : entry->name + " ",
                                              h5::shape_text(entry->shape))),
             concat("Name another file, or name the deck that the model in this file was trained "
                    "with",
                    deck_of_run(weights.path()))});
    }
    torch::Tensor(tensor).copy_(read(weights, *entry, shape));
    return name;
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
                         std::set<std::string>& known) {
    for (auto const& item : model.named_parameters()) {
        h5::Shape const shape(item.value().sizes().begin(), item.value().sizes().end());
        for (auto const& source : model.other_names(item.key())) {
            auto const* const entry = weights.find(source.name);
            if (entry == nullptr || source.transposed || source.parts != 1 ||
                entry->shape != shape || !known.insert(entry->name).second) {
                continue;
            }
            auto const values = item.value().detach().cpu();
            if (!torch::equal(read(weights, *entry, shape).to(values.scalar_type()), values)) {
                throw Error(
                    ExitCode::data,
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

} // namespace

void narrow_as_noted(nn::Model& model, checkpoint::Record const& record) {
    if (auto const found = record.notes.find(checkpoint::shapes_note);
        found != record.notes.end()) {
        nn::narrow(model, found->second);
    }
}

std::vector<std::string> load_weights(nn::Model& model, checkpoint::VerifiedFile const& file) {
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
    std::set<std::string> known;
    auto const parameters = model.named_parameters();
    std::set<void const*> filled; // of those that layers share, a file may have one name only
    for (auto const& item : parameters) {
        if (weights->find(item.key()) != nullptr) {
            filled.insert(item.value().unsafeGetTensorImpl());
        }
    }
    for (auto const& item : parameters) {
        if (weights->find(item.key()) != nullptr ||
            filled.insert(item.value().unsafeGetTensorImpl()).second) {
            known.insert(fill(item.value().detach(), item.key(), model, *weights));
        }
    }
    for (auto const& item : model.named_buffers()) {
        known.insert(fill(item.value(), item.key(), model, *weights));
    }
    require_same_values(model, *weights, known);
    std::vector<std::string> without_place;
    for (auto const& entry : weights->entries()) {
        if (!known.contains(entry.name)) {
            without_place.push_back(entry.name);
        }
    }
    return without_place;
}

} // namespace lockstep::train

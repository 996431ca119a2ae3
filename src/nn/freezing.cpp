#include "nn/freezing.hpp"

#include "base/adapter_names.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/layer_modes.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace lockstep::nn {

namespace {

constexpr char const* key = "optimizer.freeze";

std::vector<std::string> names_of(Model const& model) {
    std::vector<std::string> names;
    for (auto const& item : model.named_parameters()) {
        names.push_back(item.key());
    }
    for (auto const& item : model.named_buffers()) {
        names.push_back(item.key());
    }
    return names;
}

void require_used(NamePatterns const& patterns, std::string const& text, Model const& model) {
    auto const names = names_of(model);
    if (auto const unused = patterns.unused(names); !unused.empty()) {
        throw Error(ExitCode::usage,
                    {concat(key, " = ", text), concat(unused, " fits no parameter of the model"),
                     suggested_pattern(unused, names,
                                       concat("The model has ", names_text(names),
                                              ". List all with lockstep checkpoint info of a "
                                              "checkpoint"))});
    }
}

using IsFrozen = std::function<bool(std::string const& name)>;

/// Whether a layer has buffers that stay as they are.
bool rests(std::string const& prefix, torch::nn::Module const& layer, IsFrozen const& is_frozen) {
    auto const all_fit = [&](auto const& items) {
        return std::ranges::all_of(
            items, [&](auto const& item) { return is_frozen(prefix + item.key()); });
    };
    auto const parameters = layer.named_parameters(/*recurse=*/false);
    auto const buffers = layer.named_buffers(/*recurse=*/false);
    return !buffers.is_empty() && all_fit(parameters.is_empty() ? buffers : parameters);
}

/// Freezes by name; `told` is the deck's key and value, for messages.
std::vector<std::string> freeze_where(Model& model, IsFrozen const& is_frozen,
                                      std::string const& told) {
    std::vector<std::string> frozen;
    std::map<void const*, std::string> names; // the first of a parameter that layers share
    for (auto const& item : model.named_parameters()) {
        auto const& parameter = item.value();
        auto const [name, is_new] = names.try_emplace(parameter.unsafeGetTensorImpl(), item.key());
        if (is_frozen(item.key()) && parameter.requires_grad()) {
            torch::Tensor(parameter).set_requires_grad(false);
            frozen.push_back(name->second);
        }
    }
    if (std::ranges::none_of(model.parameters(), &torch::Tensor::requires_grad)) {
        throw Error(ExitCode::usage, {told, "no parameter is left to train",
                                      "Except the layers to train, such as !output.*"});
    }
    for (auto const& item : model.named_modules()) {
        auto const prefix = item.key().empty() ? "" : item.key() + ".";
        if (!rests(prefix, *item.value(), is_frozen)) {
            continue;
        }
        if (!model.takes_modes_of_layers()) {
            throw Error(ExitCode::usage,
                        {concat(told, " cannot freeze ", item.key()),
                         "it has buffers, such as the running statistics of a batch norm, which "
                         "the code in the model's file may change in training",
                         "Freeze the layer in the file: before you export, call "
                         "requires_grad_(False) and eval() for it"});
        }
        rest_layer(*item.value());
    }
    return frozen;
}

} // namespace

std::vector<std::string> freeze(Model& model, std::string const& text) {
    NamePatterns const patterns(text);
    if (trimmed(text) == "none") {
        return {};
    }
    require_used(patterns, text, model);
    return freeze_where(
        model, [&](std::string const& name) { return patterns.has(name); },
        concat(key, " = ", text));
}

std::vector<std::string> freeze_all_but(Model& model, NamePatterns const& trained,
                                        std::string const& told) {
    auto const parameters = model.named_parameters();
    return freeze_where(
        model,
        [&](std::string const& name) {
            return parameters.contains(name) && !is_of_adapter(name) && !trained.has(name);
        },
        told);
}

void thaw(Model& model, std::vector<std::string> const& parameters) {
    auto const named = model.named_parameters();
    for (auto const& name : parameters) {
        torch::Tensor(named[name]).set_requires_grad(true);
    }
    model.train();
}

} // namespace lockstep::nn

#include "lockstep/nn/registry.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/random.hpp"
#include "lockstep/base/text.hpp"

#include "lmu_asr.hpp"
#include "models.hpp"

namespace lockstep::nn {

std::vector<ModelKind> model_kinds() {
    return {clstm_policy_kind(), cnn_kind(), cnn3d_kind(),      lmu_asr_kind(),
            lstm_policy_kind(),  mlp_kind(), mlp_policy_kind(), resnet_kind(),
            script_kind(),       unet_kind()};
}

namespace {

constexpr std::string_view plugin_prefix = "plugin:";

/// Those that "plugin:LIBRARY:NAME" may mean.
std::vector<ModelKind> kinds_of_plugin(std::string const& name, std::size_t colon) {
    auto const first = plugin_prefix.size();
    if (colon <= first || colon + 1 == name.size()) {
        throw Error(ExitCode::usage,
                    {concat("model.name = ", name), "a plug-in is named plugin:LIBRARY:NAME",
                     "Name the shared library and one of its models"});
    }
    return plugin_models(name.substr(first, colon - first));
}

ModelKind find_kind(std::string const& chosen) {
    bool const is_plugin = chosen.starts_with(plugin_prefix);
    auto const colon = is_plugin ? chosen.rfind(':') : std::string::npos;
    auto const name = is_plugin ? chosen.substr(colon + 1) : chosen;
    std::vector<std::string> names;
    for (auto const& kind : is_plugin ? kinds_of_plugin(chosen, colon) : model_kinds()) {
        names.push_back(kind.name);
        if (kind.name == name) {
            return kind;
        }
    }
    auto const near = nearest_name(name, names);
    throw Error(ExitCode::usage,
                {concat("model.name = ", chosen), concat("there are ", joined(names, ", ")),
                 near.empty() ? std::string("lockstep models lists them with their keys")
                              : concat("Did you mean ", near, "?")});
}

} // namespace

namespace {

void require_one_plain_input(ModelKind const& kind, Interface const& interface) {
    if (kind.any_inputs || interface.inputs.empty()) {
        return;
    }
    auto const& first = interface.inputs.front();
    if (interface.inputs.size() == 1 && !first.whole && !first.ragged) {
        return;
    }
    throw Error(ExitCode::data,
                {concat("model.name = ", kind.name),
                 "it takes one input of amounts a sample, alike in shape; data.inputs has others",
                 "Name such a dataset in data.inputs, or take a model that lockstep models says "
                 "takes any"});
}

} // namespace

double parameter_count(config::Model const& chosen, Interface const& interface) {
    auto const kind = find_kind(chosen.name);
    require_one_plain_input(kind, interface);
    return kind.parameters(config::OwnValues("model", chosen.own, kind.keys), interface);
}

std::shared_ptr<Model> make_model(config::Model const& chosen, Interface const& interface,
                                  std::uint64_t seed) {
    auto const kind = find_kind(chosen.name);
    require_one_plain_input(kind, interface);
    config::OwnValues const values("model", chosen.own, kind.keys);
    torch::manual_seed(random_key(seed, Stream::initialisation));
    return kind.make(values, interface);
}

} // namespace lockstep::nn

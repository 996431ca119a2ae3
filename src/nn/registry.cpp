#include "lockstep/nn/registry.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/advised_model.hpp"
#include "nn/find_kind.hpp"

#include "models.hpp"

namespace lockstep::nn {

std::vector<ModelKind> model_kinds() {
    return {clstm_policy_kind(), cnn_kind(),         cnn1d_kind(), cnn3d_kind(),      export_kind(),
            lmu_asr_kind(),      lstm_policy_kind(), mlp_kind(),   mlp_policy_kind(), resnet_kind(),
            script_kind(),       transformer_kind(), unet_kind(),  unet3d_kind(),     vit_kind()};
}

namespace {

constexpr PluginUse plugins{"model.name", "lockstep_model_plugin", "LOCKSTEP_MODELS",
                            "lockstep models"};

ModelKind kind_named(std::string const& name) {
    return find_kind(plugins, name, model_kinds());
}

config::OwnValues values_of(config::Model const& chosen, ModelKind const& kind) {
    return {"model", chosen.own, kind.keys};
}

void require_one_plain_input(ModelKind const& kind, Interface const& interface) {
    if (kind.any_inputs || interface.inputs.empty()) {
        return;
    }
    auto const& first = interface.inputs.front();
    if (interface.inputs.size() == 1 && !first.whole && !first.ragged) {
        return;
    }
    bool const is_wide = interface.inputs.size() == 1 && first.whole && first.vocabulary == 0;
    throw Error(ExitCode::data,
                {concat("model.name = ", kind.name),
                 concat("the model needs one dataset of real values, with samples of the same "
                        "shape, but ",
                        text_of(interface.inputs),
                        is_wide ? concat(" (64-bit whole numbers are tokens)") : ""),
                 is_wide ? "If they are real values, store them in another type, such as float32 "
                           "(lockstep data import hdf5 --type f32). Otherwise, choose a model that "
                           "takes tokens, such as transformer"
                         : advised_model(interface.inputs)});
}

} // namespace

void require_known(config::Model const& chosen) {
    values_of(chosen, kind_named(chosen.name));
}

double parameter_count(config::Model const& chosen, Interface const& interface) {
    auto const kind = kind_named(chosen.name);
    require_one_plain_input(kind, interface);
    return kind.parameters(values_of(chosen, kind), interface);
}

std::shared_ptr<Model> make_model(config::Model const& chosen, Interface const& interface,
                                  std::uint64_t seed) {
    auto const kind = kind_named(chosen.name);
    require_one_plain_input(kind, interface);
    auto const values = values_of(chosen, kind);
    torch::manual_seed(random_key(seed, Stream::initialisation));
    try {
        return kind.make(values, interface);
    } catch (c10::Error const& error) { // of a plug-in's code: a name that it registers twice, say
        std::string const why = error.what_without_backtrace();
        if (!names_plugin(chosen.name) || why.find("memory") != std::string::npos) {
            throw;
        }
        throw Error(ExitCode::usage, {concat("model.name = ", chosen.name, " cannot be made"),
                                      split(why, '\n').front(), "Correct the plug-in's source"});
    }
}

} // namespace lockstep::nn

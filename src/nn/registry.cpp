#include "lockstep/nn/registry.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/random.hpp"
#include "lockstep/base/text.hpp"

#include "models.hpp"

namespace lockstep::nn {

std::vector<ModelKind> model_kinds() {
    return {cnn_kind(), mlp_kind(), script_kind()};
}

namespace {

ModelKind find_kind(std::string const& name) {
    std::vector<std::string> names;
    for (auto const& kind : model_kinds()) {
        names.push_back(kind.name);
        if (kind.name == name) {
            return kind;
        }
    }
    auto const near = nearest_name(name, names);
    throw Error(ExitCode::usage,
                {concat("model.name = ", name), concat("there are ", joined(names, ", ")),
                 near.empty() ? std::string("lockstep models lists them with their keys")
                              : concat("Did you mean ", near, "?")});
}

} // namespace

double parameter_count(config::Model const& chosen, Interface const& interface) {
    auto const kind = find_kind(chosen.name);
    return kind.parameters(config::OwnValues("model", chosen.own, kind.keys), interface);
}

std::shared_ptr<Model> make_model(config::Model const& chosen, Interface const& interface,
                                  std::uint64_t seed) {
    auto const kind = find_kind(chosen.name);
    config::OwnValues const values("model", chosen.own, kind.keys);
    torch::manual_seed(random_key(seed, Stream::initialisation));
    return kind.make(values, interface);
}

} // namespace lockstep::nn

#include "lockstep/nn/registry.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/random.hpp"
#include "lockstep/base/text.hpp"
#include "models.hpp"

namespace lockstep::nn {

std::vector<ModelKind> model_kinds() { return {cnn_kind(), mlp_kind()}; }

std::shared_ptr<Model> make_model(config::Model const& chosen, Interface const& interface,
                                  std::uint64_t seed) {
    std::vector<std::string> names;
    for (auto const& kind : model_kinds()) {
        names.push_back(kind.name);
        if (kind.name == chosen.name) {
            config::OwnValues const values("model", chosen.own, kind.keys);
            torch::manual_seed(random_key(seed, Stream::initialisation));
            return kind.make(values, interface);
        }
    }
    auto const near = nearest_name(chosen.name, names);
    throw Error(ExitCode::usage,
                {concat("model.name = ", chosen.name),
                 concat("there are ", joined(names, ", ")),
                 near.empty() ? std::string("lockstep models lists them with their keys")
                              : concat("Did you mean ", near, "?")});
}

} // namespace lockstep::nn

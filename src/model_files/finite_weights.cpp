#include "model_files/finite_weights.hpp"

#include "arena/layout.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::train {

namespace {

void require_none(torch::Tensor const& bad, char const* what, std::string const& name,
                  std::filesystem::path const& path) {
    if (bad.any().item<bool>()) {
        throw Error(ExitCode::data,
                    {concat("the weights in ", path.string(), " cannot be used"),
                     concat("model/", path_of(name), " holds ", what),
                     "Name other weights, for example those of an earlier checkpoint"});
    }
}

} // namespace

void require_finite_weights(nn::Model const& model, std::filesystem::path const& path) {
    torch::NoGradGuard const no_grad;
    for (auto const& item : model.named_parameters()) {
        require_none(item.value().isnan(), "NaN", item.key(), path);
        if (item.value().requires_grad()) { // a mask may hold infinity
            require_none(item.value().isinf(), "infinity", item.key(), path);
        }
    }
    for (auto const& item : model.named_buffers()) {
        require_none(item.value().isnan(), "NaN", item.key(), path);
    }
}

} // namespace lockstep::train

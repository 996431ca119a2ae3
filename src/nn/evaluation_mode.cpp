#include "nn/evaluation_mode.hpp"

#include "lockstep/base/error.hpp"

#include <map>
#include <utility>

namespace lockstep::nn {

EvaluationMode::EvaluationMode(Model& model) : model_(model), modes_(model) {
    torch::NoGradGuard const no_grad;
    model.settle_buffers();
    std::map<torch::ScalarType, Kept> by_type;
    for (auto const& buffer : model.buffers()) {
        auto& [buffers, values] = by_type[buffer.scalar_type()];
        buffers.push_back(buffer);
        values.push_back(buffer.clone());
    }
    for (auto& [type, kept] : by_type) {
        kept_.push_back(std::move(kept));
    }
    model.eval();
}

EvaluationMode::~EvaluationMode() {
    try {
        restore();
    } catch (Error const&) { // a script whose buffers cannot be followed: its next step tells it
    }
    modes_.restore();
}

void EvaluationMode::begin(std::uint64_t key) const {
    restore();
    model_.set_random_key(key);
}

void EvaluationMode::restore() const {
    torch::NoGradGuard const no_grad;
    model_.settle_buffers();
    for (auto const& [buffers, values] : kept_) {
        at::_foreach_copy_(buffers, values);
    }
}

} // namespace lockstep::nn

#include "block_again.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "autocast_scope.hpp"

namespace lockstep::program {

namespace {

std::uint32_t version_of(c10::IValue const& value) {
    return value.isTensor() && value.toTensor().defined()
               ? static_cast<std::uint32_t>(value.toTensor()._version())
               : 0;
}

} // namespace

BlockAgain::BlockAgain(std::shared_ptr<Graph const> graph, Block const& block,
                       Execution const& execution, c10::Device device)
    : graph_(std::move(graph)), block_(block), device_(device),
      type_(at::autocast::get_autocast_dtype(device.type())),
      cast_(at::autocast::is_autocast_enabled(device.type())) {
    c10::AutoGradMode const no_grad(false);
    for (auto const slot : block.needed) {
        values_.push_back(execution.at(slot));
        auto& value = values_.back();
        bool const changes =
            std::find(block.changed.begin(), block.changed.end(), slot) != block.changed.end();
        if (value.isTensor() && value.toTensor().defined()) {
            auto const& tensor = value.toTensor();
            value =
                (changes ? tensor.clone() : tensor.detach()).requires_grad_(tensor.requires_grad());
        }
        versions_.push_back(version_of(value));
    }
    if (block.draws) {
        random_ = generator().get_state();
    }
}

void BlockAgain::operator()() {
    require_unchanged();
    Execution execution(*graph_, device_);
    for (std::size_t at = 0; at < values_.size(); ++at) {
        execution.give(block_.needed[at], std::move(values_[at]));
    }
    auto const random = block_.draws ? generator().get_state() : at::Tensor();
    if (block_.draws) {
        generator().set_state(random_);
    }
    {
        AutocastScope const autocast(device_.type(), type_, cast_, /*cache=*/false);
        execution.run(block_.first, block_.last);
    }
    if (block_.draws) {
        generator().set_state(random);
    }
}

at::Generator BlockAgain::generator() const {
    return at::globalContext().defaultGenerator(device_); // a handle
}

void BlockAgain::require_unchanged() const {
    for (std::size_t at = 0; at < values_.size(); ++at) {
        if (version_of(values_[at]) != versions_[at]) {
            auto const& node = graph_->nodes[block_.first];
            throw Error(
                ExitCode::usage,
                {"precision.gradient-checkpointing cannot run a block again",
                 concat("the input of the block was changed in place after the block had run",
                        node.origin.empty() ? "" : concat("; the block begins at ", node.origin)),
                 "Change the model so that no operator after the block changes the block's input "
                 "in place, or set precision.gradient-checkpointing = false"});
        }
    }
}

} // namespace lockstep::program

#include "program/program.hpp"

#include "base/text.hpp"

#include <c10/core/GradMode.h>

#include <set>

#include "description.hpp"
#include "execute.hpp"
#include "fit.hpp"
#include "schema.hpp"

namespace lockstep::program {

namespace {

std::shared_ptr<Graph const> with_replaced(Graph const& graph, std::string const& target,
                                           std::shared_ptr<Replacement const> const& instead) {
    auto changed = std::make_shared<Graph>(graph);
    for (auto& node : changed->nodes) {
        if (node.target == target) {
            node.instead = instead;
        }
        for (auto& argument : node.arguments) {
            if (argument.graph) {
                argument.graph = with_replaced(*argument.graph, target, instead);
            }
        }
    }
    return changed;
}

bool same_form(at::Tensor const& a, at::Tensor const& b) {
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

} // namespace

Program::Program(Archive const& archive, std::string const& name, Tensors tensors) {
    auto own = read_tensors(archive, name);
    try {
        description_ = std::make_shared<Description>(read_description(archive, name));
    } catch (Json::exception const& error) {
        archive.damaged(error.what());
    } catch (c10::Error const& error) {
        archive.damaged(split(error.what_without_backtrace(), '\n').front());
    }
    for (auto const& input : description_->inputs) {
        if (input.kind == Input::Kind::user || input.kind == Input::Kind::nothing) {
            continue;
        }
        auto const found = own.find(input.name);
        if (found == own.end()) {
            archive.damaged(concat("it holds no value of ", input.name));
        }
        auto const given =
            input.kind == Input::Kind::constant ? tensors.end() : tensors.find(input.name);
        if (given != tensors.end() && !same_form(given->second, found->second)) {
            archive.damaged(concat(input.name, " has another shape in its program ", name));
        }
        auto const& tensor = given != tensors.end() ? given->second : found->second;
        tensors_[input.name] = tensor;
    }
}

std::vector<std::pair<std::string, at::Tensor>> Program::parameters() const {
    std::vector<std::pair<std::string, at::Tensor>> result;
    std::set<void const*> seen;
    for (auto const& input : description_->inputs) {
        if (input.kind == Input::Kind::parameter) {
            auto const& tensor = tensors_.at(input.name);
            if (seen.insert(tensor.unsafeGetTensorImpl()).second) {
                result.emplace_back(input.name, tensor);
            }
        }
    }
    return result;
}

std::vector<std::pair<std::string, at::Tensor>> Program::buffers() const {
    std::vector<std::pair<std::string, at::Tensor>> result;
    for (auto const& input : description_->inputs) {
        if (input.kind == Input::Kind::buffer) {
            result.emplace_back(input.name, tensors_.at(input.name));
        }
    }
    return result;
}

std::size_t Program::inputs() const {
    return description_->given();
}

std::size_t Program::outputs() const {
    std::size_t count = 0;
    for (auto const& output : description_->outputs) {
        count += output ? 0 : 1;
    }
    return count;
}

bool Program::draws() const {
    return description_->mode.draws;
}

std::string Program::depends_on_mode() const {
    return description_->mode.text;
}

void Program::require_fit(std::vector<at::Tensor> const& inputs) const {
    program::require_fit(*description_, inputs);
}

void Program::recompute() {
    auto description = std::make_shared<Description>(*description_);
    description->blocks = blocks_of(*description->graph);
    description_ = std::move(description);
}

void Program::replace(std::string const& target, Replacement instead) {
    auto description = std::make_shared<Description>(*description_);
    description->graph = with_replaced(*description->graph, concat("torch.ops.", target),
                                       std::make_shared<Replacement const>(std::move(instead)));
    description_ = std::move(description);
}

std::vector<c10::IValue> Program::run(std::vector<at::Tensor> const& inputs) {
    require_fit(inputs);
    auto const device = inputs.front().device();
    std::vector<c10::IValue> values;
    std::size_t given = 0;
    for (auto const& input : description_->inputs) {
        if (input.kind == Input::Kind::user) {
            values.emplace_back(inputs[given++]);
        } else if (input.kind == Input::Kind::nothing) {
            values.emplace_back();
        } else {
            auto& tensor = tensors_.at(input.name);
            if (input.kind == Input::Kind::constant && tensor.device() != device) {
                tensor = tensor.to(device);
            }
            values.emplace_back(tensor);
        }
    }
    bool const in_blocks = !description_->blocks.empty() && c10::GradMode::is_enabled();
    auto const& graph = description_->graph;
    auto const all = in_blocks
                         ? execute_in_blocks(graph, description_->blocks, std::move(values), device)
                         : execute(*graph, std::move(values), device);
    std::vector<c10::IValue> results;
    settled_.clear();
    for (std::size_t at = 0; at < all.size(); ++at) {
        auto const& buffer = description_->outputs[at];
        if (buffer) {
            settled_.emplace_back(tensors_.at(*buffer), all[at].toTensor().detach());
        } else {
            results.push_back(all[at]);
        }
    }
    return results;
}

void Program::settle() const {
    c10::AutoGradMode const no_grad(false);
    for (auto const& [buffer, value] : settled_) {
        at::Tensor(buffer).copy_(value);
    }
    settled_.clear();
}

} // namespace lockstep::program

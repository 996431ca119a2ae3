#include "program/program.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/aliases.hpp"
#include "program/operator_fault.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
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

/// Slots that an operator uses as one of its arguments, and those with another use.
struct SlotUses {
    std::string target;
    std::size_t place = 0;
    std::set<std::size_t> chosen{};
    std::set<std::size_t> others{};

    void add(Node const& node) {
        for (std::size_t at = 0; at < node.arguments.size(); ++at) {
            auto const& argument = node.arguments[at];
            bool const is_it = node.target == target && at == place && argument.items.empty();
            if (is_it && argument.kind == Argument::Kind::slot) {
                chosen.insert(argument.slot);
            } else {
                add_other(argument);
            }
        }
    }
    void add_other(Argument const& argument) {
        if (argument.kind == Argument::Kind::slot) {
            others.insert(argument.slot);
        }
        for (auto const& item : argument.items) {
            add_other(item);
        }
    }
};

bool is_of_torch(Node const& node) {
    return node.target.starts_with("torch.ops.aten.");
}

std::uint64_t hash_of(at::Tensor const& tensor) {
    auto const values = tensor.detach().cpu().contiguous();
    return hash64({static_cast<std::byte const*>(values.const_data_ptr()), values.nbytes()});
}

/// Calls an operator of a library, and compares the tensors that it says it leaves as they are.
void call_watched(Node const& node, std::vector<c10::IValue>& stack) {
    auto const& arguments = node.op->schema().arguments();
    auto const given = stack;
    std::vector<std::uint64_t> before;
    auto const each = [&](auto const& use) {
        for (std::size_t at = 0; at < given.size(); ++at) {
            if (given[at].isTensor() && given[at].toTensor().defined() &&
                !is_changed(arguments[at])) {
                use(arguments[at], given[at].toTensor());
            }
        }
    };
    each([&](auto const&, at::Tensor const& tensor) { before.push_back(hash_of(tensor)); });
    node.op->callBoxed(stack);
    auto next = before.begin();
    each([&](c10::Argument const& argument, at::Tensor const& tensor) {
        if (hash_of(tensor) != *next++) {
            throw Error(
                ExitCode::usage,
                {concat("operator ", text_of(node), " cannot be run"),
                 concat("it changes its argument ", argument.name(),
                        ", but its schema does not say so"),
                 concat("In the library of the operator, declare the argument as Tensor(a!) ",
                        argument.name(), ", or change a copy of it")});
        }
    });
}

std::shared_ptr<Graph const> with_watched(Graph const& graph) {
    auto watched = std::make_shared<Graph>(graph);
    for (auto& node : watched->nodes) {
        if (node.op && !is_of_torch(node)) {
            auto const own = std::make_shared<Node const>(node);
            node.instead = std::make_shared<Replacement const>(
                [own](auto& stack) { call_watched(*own, stack); });
        }
        for (auto& argument : node.arguments) {
            if (argument.graph) {
                argument.graph = with_watched(*argument.graph);
            }
        }
    }
    return watched;
}

/// Refuses parameters and buffers whose names, with '/' for '.', are no paths in checkpoints.
void require_names(Archive const& archive, std::vector<Input> const& inputs) {
    constexpr std::size_t longest = 1000;
    std::set<std::string> paths;
    for (auto const& input : inputs) {
        if (input.kind != Input::Kind::parameter && input.kind != Input::Kind::buffer) {
            continue;
        }
        auto path = concat(input.name, "/");
        std::replace(path.begin(), path.end(), '.', '/');
        if (path.size() > longest || path.front() == '/' || path.find("//") != std::string::npos ||
            path.find('\0') != std::string::npos) {
            archive.damaged(concat("it has a parameter or buffer with the invalid name ",
                                   input.name.substr(0, longest)));
        }
        // Sorted as they are, with a '/' at the end, a group comes right before what is in it.
        auto const [place, is_new] = paths.insert(path);
        auto const next = std::next(place);
        if (!is_new || (place != paths.begin() && path.starts_with(*std::prev(place))) ||
            (next != paths.end() && next->starts_with(path))) {
            archive.damaged(concat("its parameter or buffer ", input.name,
                                   " is nested in another one, or another one in it"));
        }
    }
}

bool is_own(Input const& input) {
    return input.kind != Input::Kind::user && input.kind != Input::Kind::nothing;
}

bool same_form(at::Tensor const& a, at::Tensor const& b) {
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

/// Operators that trust the sizes that the graph states are given what is stored.
bool has_form(at::Tensor const& tensor, Input const& stated) {
    bool same = tensor.scalar_type() == stated.type &&
                tensor.dim() == static_cast<std::int64_t>(stated.sizes.size());
    for (std::size_t at = 0; same && at < stated.sizes.size(); ++at) {
        same = stated.sizes[at].kind == Size::Kind::fixed &&
               tensor.size(static_cast<std::int64_t>(at)) == stated.sizes[at].value;
    }
    return same;
}

/// Makes constants of buffers that never change and whose type no checkpoint holds, such as masks.
void make_constants(Description& description, Tensors const& tensors) {
    auto const& graph = *description.graph;
    auto const changed = Aliases(graph).changed_inputs();
    for (std::size_t at = 0; at < graph.inputs.size(); ++at) {
        auto& input = description.inputs[at];
        auto const tensor = tensors.find(input.name);
        if (input.kind == Input::Kind::buffer && tensor != tensors.end() &&
            tensor->second.scalar_type() != c10::ScalarType::Float &&
            tensor->second.scalar_type() != c10::ScalarType::Long && !changed.contains(at)) {
            input.kind = Input::Kind::constant;
        }
    }
}

} // namespace

Program::Program(Archive const& archive, std::string const& name, Tensors tensors) {
    watch_operators();
    auto own = read_tensors(archive, name);
    try {
        auto description = std::make_shared<Description>(read_description(archive, name));
        make_constants(*description, own);
        require_names(archive, description->inputs);
        description_ = std::move(description);
    } catch (Json::exception const& error) {
        archive.damaged(error.what());
    } catch (c10::Error const& error) {
        archive.damaged(split(error.what_without_backtrace(), '\n').front());
    }
    for (auto const& input : description_->inputs) {
        if (!is_own(input)) {
            continue;
        }
        auto const found = own.find(input.name);
        if (found == own.end()) {
            archive.damaged(concat("it holds no value for ", input.name));
        }
        if (!has_form(found->second, input)) {
            archive.damaged(concat("the shape or type of its stored tensor ", input.name,
                                   " is not that of its graph"));
        }
        auto const given =
            input.kind == Input::Kind::constant ? tensors.end() : tensors.find(input.name);
        if (given != tensors.end() && !same_form(given->second, found->second)) {
            archive.damaged(concat("the shape or type of ", input.name, " in program ", name,
                                   " differs from that in another program"));
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

std::vector<Write> Program::writes() const {
    std::map<void const*, Node const*> changed; // tied weights have several names
    for (auto const& [at, by] : Aliases(*description_->graph).changed_inputs()) {
        if (auto const& input = description_->inputs[at]; is_own(input)) {
            changed.try_emplace(tensors_.at(input.name).unsafeGetTensorImpl(), by);
        }
    }
    std::vector<Write> writes;
    for (auto const& input : description_->inputs) {
        if (!is_own(input) || input.kind == Input::Kind::buffer) {
            continue;
        }
        auto const& tensor = tensors_.at(input.name);
        if (auto const found = changed.find(tensor.unsafeGetTensorImpl()); found != changed.end()) {
            writes.push_back({input.name, text_of(*found->second),
                              input.kind == Input::Kind::parameter, tensor.requires_grad()});
        }
    }
    return writes;
}

void Program::keep_as_buffers(std::set<std::string> const& names) {
    auto description = std::make_shared<Description>(*description_);
    for (auto& input : description->inputs) {
        if (input.kind == Input::Kind::parameter && names.contains(input.name)) {
            input.kind = Input::Kind::buffer;
        }
    }
    description_ = std::move(description);
}

std::size_t Program::inputs() const {
    return description_->given();
}

std::size_t Program::outputs() const {
    return description_->graph->outputs.size();
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

std::set<std::string> Program::used_only_by(std::string const& target, std::size_t place) const {
    auto const& graph = *description_->graph;
    SlotUses uses{concat("torch.ops.", target), place};
    for (auto const& node : graph.nodes) {
        uses.add(node);
    }
    for (auto const& output : graph.outputs) {
        uses.add_other(output);
    }
    std::map<void const*, bool> fits; // of each tensor, which may have several names
    for (std::size_t at = 0; at < description_->inputs.size(); ++at) {
        auto const& input = description_->inputs[at];
        if (input.kind != Input::Kind::parameter) {
            continue;
        }
        auto const slot = graph.inputs[at];
        auto& fit =
            fits.try_emplace(tensors_.at(input.name).unsafeGetTensorImpl(), true).first->second;
        fit = fit && uses.others.count(slot) == 0;
    }
    std::set<std::string> names;
    for (std::size_t at = 0; at < description_->inputs.size(); ++at) {
        auto const& input = description_->inputs[at];
        if (input.kind == Input::Kind::parameter && uses.chosen.count(graph.inputs[at]) > 0 &&
            fits.at(tensors_.at(input.name).unsafeGetTensorImpl())) {
            names.insert(input.name);
        }
    }
    return names;
}

void Program::replace(std::string const& target, Replacement instead) {
    auto description = std::make_shared<Description>(*description_);
    description->graph = with_replaced(*description->graph, concat("torch.ops.", target),
                                       std::make_shared<Replacement const>(std::move(instead)));
    description_ = std::move(description);
}

Program Program::watched() const {
    auto description = std::make_shared<Description>(*description_);
    description->graph = with_watched(*description->graph);
    auto program = *this;
    program.description_ = std::move(description);
    return program;
}

std::vector<c10::IValue> Program::values_of(std::vector<at::Tensor> const& inputs) {
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
    return values;
}

std::vector<c10::IValue> Program::run(std::vector<at::Tensor> const& inputs) {
    auto values = values_of(inputs);
    auto const device = inputs.front().device();
    bool const in_blocks = !description_->blocks.empty() && c10::GradMode::is_enabled();
    auto const& graph = description_->graph;
    return in_blocks ? execute_in_blocks(graph, description_->blocks, std::move(values), device)
                     : execute(*graph, std::move(values), device);
}

std::vector<c10::IValue> Program::run(std::vector<at::Tensor> const& inputs,
                                      KeepOutputs const& keep) {
    if (!module_outputs_) {
        module_outputs_ = module_outputs(*description_->graph);
    }
    return execute(*description_->graph, values_of(inputs), inputs.front().device(),
                   *module_outputs_, keep);
}

} // namespace lockstep::program

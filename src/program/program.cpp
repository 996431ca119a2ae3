#include "program/program.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <c10/core/GradMode.h>

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "execute.hpp"
#include "graph_reader.hpp"
#include "guard.hpp"
#include "operators.hpp"
#include "schema.hpp"

namespace lockstep::program {

namespace {

constexpr int schema_major = 8; ///< of torch/_export/serde/schema.py

struct Input {
    enum class Kind { parameter, buffer, constant, nothing, user };
    Kind kind = Kind::user;
    std::string name;
    c10::ScalarType type = c10::ScalarType::Undefined;
    std::vector<Size> sizes{};
};

struct Bounds {
    std::int64_t minimum = 0;
    std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};

struct Mode {
    std::string text; ///< an operator that works differently in training, and its line
    bool draws = false;
};

bool is_false(c10::IValue const& value) {
    return (value.isBool() && !value.toBool()) || (value.isDouble() && value.toDouble() == 0);
}

/// What of an operator tells whether it is in training.
bool is_mode(std::string const& argument) {
    constexpr std::array names{"train", "training", "dropout_p", "use_input_stats"};
    return std::find(names.begin(), names.end(), argument) != names.end();
}

void note_mode(Graph const& graph, Mode& mode) {
    for (auto const& node : graph.nodes) {
        bool trains = false;
        bool has_mode = false;
        for (std::size_t at = 0; at < node.arguments.size(); ++at) {
            auto const& argument = node.arguments[at];
            if (argument.graph) {
                note_mode(*argument.graph, mode);
            }
            if (node.op && is_mode(node.op->schema().arguments()[at].name())) {
                has_mode = true;
                trains = trains || !is_false(argument.constant);
            }
        }
        if (has_mode && mode.text.empty()) {
            mode.text =
                concat(node.target, node.origin.empty() ? "" : concat(" (", node.origin, ")"));
        }
        mode.draws =
            mode.draws || (node.op && lockstep::program::draws(*node.op) && (trains || !has_mode));
    }
}

} // namespace

struct Description {
    std::string name; ///< of the file
    std::shared_ptr<Graph const> graph;
    std::vector<Block> blocks{}; ///< to be computed again in backward; none: everything is kept
    std::vector<Input> inputs;
    std::map<std::string, Bounds> bounds;
    std::vector<std::string> guards;
    std::vector<std::optional<std::string>> outputs; ///< a buffer's name, or the user's
    Mode mode;
};

namespace {

[[noreturn]] void refuse(std::string const& what, std::string const& why,
                         std::string const& advice) {
    throw Error(ExitCode::usage, {what, why, advice});
}

Input input_of(Json const& json, Json const& tensors) {
    auto const& kind = member_name(json);
    auto const& value = member(json);
    if (kind == "parameter") {
        return {Input::Kind::parameter, value.at("parameter_name").get<std::string>()};
    }
    if (kind == "buffer") {
        return {Input::Kind::buffer, value.at("buffer_name").get<std::string>()};
    }
    if (kind == "tensor_constant") {
        return {Input::Kind::constant, value.at("tensor_constant_name").get<std::string>()};
    }
    if (kind == "constant_input") {
        return {Input::Kind::nothing, value.at("name").get<std::string>()};
    }
    if (kind != "user_input" || !value.at("arg").contains("as_tensor")) {
        refuse(concat("the exported program has an input of kind ", kind),
               "models get only tensors",
               "Write a forward whose arguments are tensors, and export it again");
    }
    Input input{Input::Kind::user, value.at("arg").at("as_tensor").at("name").get<std::string>()};
    auto const& form = tensors.at(input.name);
    input.type = scalar_type_of(form.at("dtype"));
    for (auto const& size : form.at("sizes")) {
        input.sizes.push_back(size_of(size));
    }
    return input;
}

std::optional<std::string> output_of(Json const& json) {
    auto const& kind = member_name(json);
    if (kind == "buffer_mutation") {
        return member(json).at("buffer_name").get<std::string>();
    }
    if (kind != "user_output") {
        refuse(concat("the exported program has an output of kind ", kind),
               "programs for training return what forward returns",
               "Export with torch.export.export(model, inputs), without decompositions");
    }
    return std::nullopt;
}

void require_training_dialect(Json const& json) {
    auto const& version = json.at("schema_version");
    if (version.at("major") != schema_major) {
        refuse(concat("the exported program has the schema ", version.at("major").dump()),
               concat("this version reads the schema ", schema_major),
               "Export it with PyTorch 2.6 or later, or use a newer Lockstep");
    }
    bool trains = false;
    for (auto const& verifier : json.at("verifiers")) {
        trains = trains || verifier == "TRAINING";
    }
    if (!trains) {
        refuse("the exported program is decomposed",
               concat("its dialect is ", json.at("verifiers").dump(),
                      ", with operators that have no derivative, or a different one"),
               "Save what torch.export.export returns, without run_decompositions");
    }
}

Description description_of(Archive const& archive, std::string const& name) {
    auto const json = Json::parse(archive.text(concat("models/", name, ".json")));
    require_training_dialect(json);
    auto const& module = json.at("graph_module");
    Description result{
        archive.path().string(), read_graph(module.at("graph")), {}, {}, {}, {}, {}, {}};
    for (auto const& [symbol, range] : json.at("range_constraints").items()) {
        auto& bounds = result.bounds[symbol];
        auto const set = [&](char const* key, std::int64_t& bound) {
            bound = range.at(key).is_null() ? bound : range.at(key).get<std::int64_t>();
        };
        set("min_val", bounds.minimum);
        set("max_val", bounds.maximum);
    }
    if (json.contains("guards_code")) {
        result.guards = json.at("guards_code").get<std::vector<std::string>>();
    }
    auto const& signature = module.at("signature");
    for (auto const& each : signature.at("input_specs")) {
        result.inputs.push_back(input_of(each, module.at("graph").at("tensor_values")));
    }
    for (auto const& each : signature.at("output_specs")) {
        result.outputs.push_back(output_of(each));
    }
    if (result.inputs.size() != result.graph->inputs.size() ||
        result.outputs.size() != result.graph->outputs.size()) {
        archive.damaged("its signature does not fit its graph");
    }
    note_mode(*result.graph, result.mode);
    return result;
}

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
        description_ = std::make_shared<Description>(description_of(archive, name));
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
    std::size_t count = 0;
    for (auto const& input : description_->inputs) {
        count += input.kind == Input::Kind::user ? 1 : 0;
    }
    return count;
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
    if (inputs.size() != this->inputs() || inputs.empty()) {
        refuse(concat(description_->name, " takes ", this->inputs(), " inputs"),
               concat("it is given ", inputs.size()),
               "Name as many datasets in data.inputs as its forward has arguments");
    }
    constexpr char const* advice =
        "Export it with dynamic_shapes that name this dimension, as lockstep_export.save does";
    std::map<std::string, at::Tensor> named;
    std::map<std::string, std::int64_t> symbols;
    auto const differs = [&](Input const& input, std::string const& why) {
        refuse(concat(description_->name, " cannot take a batch as its input ", input.name), why,
               advice);
    };
    for (auto const& input : description_->inputs) {
        if (input.kind != Input::Kind::user) {
            continue;
        }
        auto const& tensor = inputs.at(named.size());
        named[input.name] = tensor;
        if (tensor.scalar_type() != input.type) {
            refuse(concat(description_->name, " takes ", c10::toString(input.type),
                          " as its input ", input.name),
                   concat("it is given ", c10::toString(tensor.scalar_type())),
                   "Data sets give float32 (Float) and int64 (Long): export it with such inputs");
        }
        if (tensor.dim() != static_cast<std::int64_t>(input.sizes.size())) {
            differs(input, concat("it has ", tensor.dim(), " dimensions; exported with ",
                                  input.sizes.size()));
        }
        for (std::size_t at = 0; at < input.sizes.size(); ++at) {
            auto const& wanted = input.sizes[at];
            auto const size = tensor.size(static_cast<std::int64_t>(at));
            if (wanted.kind == Size::Kind::fixed && size != wanted.value) {
                differs(input, concat("dimension ", at, " is ", size, "; exported for ",
                                      wanted.value, " only"));
            }
            if (wanted.kind != Size::Kind::symbol) {
                continue;
            }
            auto const [bound, is_new] = symbols.try_emplace(wanted.symbol, size);
            auto const range = description_->bounds.find(wanted.symbol);
            auto const bounds = range == description_->bounds.end() ? Bounds{} : range->second;
            if (bound->second != size) {
                differs(input, concat("dimension ", at, " is ", size, ", but must be ",
                                      bound->second, " like another one"));
            }
            if (size < bounds.minimum || size > bounds.maximum) {
                differs(input, concat("dimension ", at, " is ", size, "; exported for ",
                                      bounds.minimum, " to ", bounds.maximum));
            }
        }
    }
    for (auto const& guard : description_->guards) {
        if (!holds(guard, named)) {
            refuse(concat(description_->name, " cannot take this batch"),
                   concat("its export assumed: ", guard), advice);
        }
    }
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

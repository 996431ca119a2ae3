#include "description.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/operators.hpp"

#include <algorithm>

#include "graph_reader.hpp"
#include "schema.hpp"

namespace lockstep::program {

std::string text_of(Node const& node) {
    return concat(node.target, node.origin.empty() ? "" : concat(" (", node.origin, ")"));
}

namespace {

constexpr int schema_major = 8; ///< of torch/_export/serde/schema.py

[[noreturn]] void refuse(std::string const& what, std::string const& why,
                         std::string const& advice) {
    throw Error(ExitCode::usage, {what, why, advice});
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
            mode.text = text_of(node);
        }
        mode.draws =
            mode.draws || (node.op && lockstep::program::draws(*node.op) && (trains || !has_mode));
    }
}

/// The type and the sizes of a tensor that the graph names.
void read_form(Input& input, std::string const& name, Json const& tensors) {
    auto const& form = tensors.at(name);
    input.type = scalar_type_of(form.at("dtype"));
    for (auto const& size : form.at("sizes")) {
        input.sizes.push_back(size_of(size));
    }
}

Input input_of(Json const& json, Json const& tensors) {
    auto const& kind = member_name(json);
    auto const& value = member(json);
    auto const stored = [&](Input::Kind is, char const* name) {
        Input input{is, value.at(name).get<std::string>()};
        read_form(input, value.at("arg").at("name").get<std::string>(), tensors);
        return input;
    };
    if (kind == "parameter") {
        return stored(Input::Kind::parameter, "parameter_name");
    }
    if (kind == "buffer") {
        return stored(Input::Kind::buffer, "buffer_name");
    }
    if (kind == "tensor_constant") {
        return stored(Input::Kind::constant, "tensor_constant_name");
    }
    if (kind == "constant_input") {
        return {Input::Kind::nothing, value.at("name").get<std::string>()};
    }
    if (kind != "user_input" || !value.at("arg").contains("as_tensor")) {
        refuse(concat("the exported program has an input of kind ",
                      kind == "user_input" ? member_name(value.at("arg")) : kind),
               "models can be given only tensors",
               "Write a forward method whose arguments are tensors, and export the model again");
    }
    Input input{Input::Kind::user, value.at("arg").at("as_tensor").at("name").get<std::string>()};
    read_form(input, input.name, tensors);
    return input;
}

/// Programs for training change their buffers by operators of their graphs.
void require_output_of_forward(Json const& json) {
    if (auto const& kind = member_name(json); kind != "user_output") {
        refuse(concat("the exported program has an output of kind ", kind),
               "programs for training return only what the forward method returns",
               "Export with torch.export.export(model, inputs), without decompositions");
    }
}

void require_training_dialect(Json const& json) {
    auto const& version = json.at("schema_version");
    if (version.at("major") != schema_major) {
        refuse(concat("the exported program has schema version ", version.at("major").dump()),
               concat("this version of Lockstep reads only schema version ", schema_major),
               "If the schema is older, export the model with PyTorch 2.6 or later; if it is "
               "newer, use a newer Lockstep");
    }
    bool trains = false;
    for (auto const& verifier : json.at("verifiers")) {
        trains = trains || verifier == "TRAINING";
    }
    if (!trains) {
        refuse(
            "the exported program is decomposed",
            concat("its dialect is ", json.at("verifiers").dump(),
                   ", not TRAINING, so its operators may have no derivative, or a different one"),
            "Save what torch.export.export returns, without run_decompositions");
    }
}

} // namespace

std::size_t Description::given() const {
    return static_cast<std::size_t>(
        std::count_if(inputs.begin(), inputs.end(),
                      [](Input const& input) { return input.kind == Input::Kind::user; }));
}

Description read_description(Archive const& archive, std::string const& name) {
    auto const json = archive.json(concat("models/", name, ".json"));
    require_training_dialect(json);
    auto const& module = json.at("graph_module");
    Description result{archive.path().string(), read_graph(module.at("graph")), {}, {}, {}, {}, {}};
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
    auto const& outputs = signature.at("output_specs");
    for (auto const& each : outputs) {
        require_output_of_forward(each);
    }
    if (result.inputs.size() != result.graph->inputs.size() ||
        outputs.size() != result.graph->outputs.size()) {
        archive.damaged("its signature does not fit its graph");
    }
    note_mode(*result.graph, result.mode);
    return result;
}

} // namespace lockstep::program

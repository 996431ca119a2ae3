#include "graph_reader.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/bounded.hpp"
#include "program/filled.hpp"
#include "program/operators.hpp"
#include "program/pooled.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "argument_reader.hpp"
#include "checked.hpp"
#include "origin.hpp"
#include "sized.hpp"
#include "sizes.hpp"

namespace lockstep::program {

namespace {

constexpr std::string_view operators = "torch.ops.";
constexpr std::string_view higher_order = "torch.ops.higher_order.";

class GraphReader {
  public:
    explicit GraphReader(int depth)
        : arguments_(names_,
                     [depth](Json const& json) { return GraphReader(depth + 1).read(json); }) {
        constexpr int deepest = 32;
        if (depth > deepest) {
            damaged_program("its graphs are nested too deeply");
        }
    }

    std::shared_ptr<Graph> read(Json const& json) {
        for (auto const& input : json.at("inputs")) {
            auto const& value = member(input);
            auto const slot = graph_->slots++;
            graph_->inputs.push_back(slot);
            if (value.contains("name")) {
                names_[value.at("name").get<std::string>()] = slot;
            } else if (value.contains("as_name")) {
                names_[value.at("as_name").get<std::string>()] = slot;
            }
        }
        for (auto const& each : json.at("nodes")) {
            node(each);
        }
        for (auto const& output : json.at("outputs")) {
            graph_->outputs.push_back(arguments_.read(output));
        }
        find_last_uses(*graph_);
        for (auto& node : graph_->nodes) {
            if (node.op && !node.instead) {
                node.instead = pooled(node);
            }
        }
        return graph_;
    }

  private:
    [[noreturn]] static void refuse(Node const& node, NoOperator const& reason) {
        throw Error(ExitCode::usage,
                    {concat("operator ", node.target, " cannot be run",
                            node.origin.empty() ? "" : concat(" (", node.origin, ")")),
                     reason.why, reason.next});
    }

    void node(Json const& json) {
        Node node;
        node.target = json.at("target").get<std::string>();
        node.origin = origin_of(json.at("metadata").value("stack_trace", std::string()));
        node.module = module_of(json.at("metadata").value("nn_module_stack", std::string()));
        // Notes what was the case at the export, whose types and device need not be the run's.
        if (node.target == "torch.ops.aten._assert_tensor_metadata.default") {
            return;
        }
        if (node.target.starts_with(higher_order)) {
            nested(node, json);
        } else if (node.target.starts_with(operators)) {
            operation(node, json);
        } else if (is_calculation(node.target)) {
            read_arguments(node, json);
        } else {
            refuse(node, {"this version of Lockstep does not know it"});
        }
        for (auto const& output : json.at("outputs")) {
            node.results.push_back(result(node, output));
        }
        require_results(node);
        graph_->nodes.push_back(std::move(node));
    }
    void read_arguments(Node& node, Json const& json) {
        for (auto const& input : json.at("inputs")) {
            node.arguments.push_back(arguments_.read(input.at("arg")));
        }
    }
    void nested(Node& node, Json const& json) {
        auto const name = node.target.substr(higher_order.size());
        if (name != "wrap_with_set_grad_enabled" && name != "wrap_with_autocast") {
            refuse(node, {concat("the higher-order operator ", name,
                                 " is not supported (only no_grad and autocast are)")});
        }
        read_arguments(node, json);
        auto const& given = node.arguments;
        // Of torch.set_grad_enabled(mode), and of torch.autocast(device, dtype, enabled, cache).
        using Kinds = std::vector<std::string_view>;
        auto const kinds = name == "wrap_with_autocast"
                               ? std::vector<Kinds>{{"as_string", "as_device"},
                                                    {"as_scalar_type", "as_none"},
                                                    {"as_bool"},
                                                    {"as_bool", "as_none"}}
                               : std::vector<Kinds>{{"as_bool"}};
        auto const before = kinds.size();
        bool fits = given.size() > before && given[before].kind == Argument::Kind::graph &&
                    given.size() - before - 1 == given[before].graph->inputs.size();
        for (std::size_t at = 0; fits && at < before; ++at) {
            auto const& kind = member_name(json.at("inputs").at(at).at("arg"));
            fits = std::ranges::find(kinds[at], kind) != kinds[at].end();
        }
        if (!fits) {
            damaged_program(concat(node.target, " has arguments that do not fit it"));
        }
    }
    void operation(Node& node, Json const& json) {
        auto found = find_operator(node.target);
        if (auto const* const reason = std::get_if<NoOperator>(&found)) {
            refuse(node, *reason);
        }
        node.op = std::get<c10::OperatorHandle>(found);
        node.instead = checked(*node.op);
        if (!node.instead) {
            node.instead = sized(*node.op);
        }
        if (!node.instead) {
            node.instead = filled(*node.op);
        }
        std::map<std::string, Json const*> given;
        for (auto const& input : json.at("inputs")) {
            given[input.at("name").get<std::string>()] = &input.at("arg");
        }
        // repeat_interleave writes as many rows as its repeats say, wherever the output ends.
        auto const size = given.find("output_size");
        if (node.op->schema().name() == "aten::repeat_interleave" && size != given.end() &&
            member_name(*size->second) != "as_none") {
            refuse(
                node,
                {"its output_size is set, but LibTorch does not check output_size against repeats",
                 "Leave output_size out, and export the model again"});
        }
        for (auto const& wanted : node.op->schema().arguments()) {
            auto const found_argument = given.find(wanted.name());
            if (found_argument != given.end()) {
                node.arguments.push_back(arguments_.read(*found_argument->second, wanted));
                given.erase(found_argument);
            } else if (wanted.default_value()) {
                node.arguments.push_back({.constant = *wanted.default_value()});
            } else {
                refuse(node, {concat("its argument ", wanted.name(), " is missing")});
            }
        }
        if (!given.empty()) {
            refuse(node, {concat("it has an argument ", given.begin()->first,
                                 ", which this version of LibTorch does not know")});
        }
    }

    std::size_t named_slot(Json const& name) {
        auto const slot = graph_->slots++;
        names_[name.get<std::string>()] = slot;
        return slot;
    }
    Result result(Node const& node, Json const& json) {
        auto const& kind = member_name(json);
        auto const& value = member(json);
        if (kind == "as_tensor") {
            return {false, {named_slot(value.at("name"))}};
        }
        if (kind == "as_tensors") {
            Result list{true, {}};
            for (auto const& each : value) {
                list.slots.emplace_back(named_slot(each.at("name")));
            }
            return list;
        }
        if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
            bool const named = value.contains("as_name");
            return {false, {named ? std::optional(named_slot(value.at("as_name"))) : std::nullopt}};
        }
        if (kind != "as_none") {
            refuse(node, {concat("it returns ", kind, ", which is not supported")});
        }
        return {false, {std::nullopt}};
    }
    /// An operator gives what its schema says, a calculation one number, a graph its outputs.
    static void require_results(Node const& node) {
        std::size_t count = 1;
        if (node.op) {
            auto const& returns = node.op->schema().returns();
            count = returns.size();
            for (std::size_t at = 0; at < std::min(count, node.results.size()); ++at) {
                bool const is_list = returns[at].type()->kind() == c10::TypeKind::ListType;
                if (is_list != node.results[at].is_list) {
                    damaged_program(concat(node.target, " has results that do not fit it"));
                }
            }
        } else if (node.target.starts_with(higher_order)) {
            for (auto const& argument : node.arguments) {
                count = argument.graph ? argument.graph->outputs.size() : count;
            }
            std::size_t slots = 0;
            for (auto const& each : node.results) {
                slots += each.slots.size();
            }
            if (slots > count) {
                damaged_program(concat(node.target, " returns fewer results than are used"));
            }
            return;
        }
        if (node.results.size() > count) {
            damaged_program(concat(node.target, " returns fewer results than are used"));
        }
    }

    std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
    SlotNames names_;
    ArgumentReader arguments_;
};

} // namespace

std::shared_ptr<Graph> read_graph(Json const& json) {
    auto graph = GraphReader(0).read(json);
    bound_results(*graph);
    return graph;
}

} // namespace lockstep::program

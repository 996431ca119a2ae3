#include "graph_reader.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "operators.hpp"
#include "sizes.hpp"

namespace lockstep::program {

namespace {

constexpr std::string_view operators = "torch.ops.";
constexpr std::string_view higher_order = "torch.ops.higher_order.";

[[noreturn]] void damaged(std::string const& why) {
    throw Error(ExitCode::data,
                {"the exported program is damaged", why, "Copy it once more, or export it again"});
}

/// A type without "or nothing".
c10::TypePtr plain(c10::TypePtr const& type) {
    return type && type->kind() == c10::TypeKind::OptionalType
               ? type->castRaw<c10::OptionalType>()->getElementType()
               : type;
}

c10::TypePtr element_of(c10::TypePtr const& type) {
    return type && type->kind() == c10::TypeKind::ListType
               ? type->castRaw<c10::ListType>()->getElementType()
               : nullptr;
}

/// Of "key,path,type;key,path,type", from the outermost module to the innermost: the last path.
std::string module_of(std::string const& stack) {
    auto const modules = split(stack, ';');
    auto const last = modules.empty() ? std::vector<std::string>{} : split(modules.back(), ',');
    return last.size() == 3 ? last[1] : std::string();
}

class GraphReader {
  public:
    explicit GraphReader(int depth) : depth_(depth) {
        constexpr int deepest = 32;
        if (depth > deepest) {
            damaged("its graphs are nested too deeply");
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
            graph_->outputs.push_back(argument(output, nullptr, 0));
        }
        find_last_uses();
        return graph_;
    }

  private:
    [[noreturn]] static void refuse(Node const& node, std::string const& why) {
        throw Error(ExitCode::usage,
                    {concat("operator ", node.target, " cannot be run",
                            node.origin.empty() ? "" : concat(" (", node.origin, ")")),
                     why,
                     "Write that line with operators of PyTorch itself, and export with "
                     "torch.export.export, without run_decompositions"});
    }

    // Arguments.

    static Argument constant(c10::IValue value) {
        Argument argument;
        argument.constant = std::move(value);
        return argument;
    }
    Argument slot(Json const& name) const {
        auto const found = names_.find(name.get<std::string>());
        if (found == names_.end()) {
            damaged(concat("its graph uses ", name.dump(), " before it is computed"));
        }
        Argument argument;
        argument.kind = Argument::Kind::slot;
        argument.slot = found->second;
        return argument;
    }
    Argument symbolic(Json const& json) const {
        if (json.contains("as_name")) {
            return slot(json.at("as_name"));
        }
        auto const& kind = member_name(json);
        auto const& value = member(json);
        return constant(kind == "as_int"    ? c10::IValue(value.get<std::int64_t>())
                        : kind == "as_bool" ? c10::IValue(value.get<bool>())
                                            : c10::IValue(real_of(value)));
    }
    Argument tensor(Json const& json) const { return slot(json.at("name")); }
    Argument optional_tensor(Json const& json) const {
        return json.contains("as_tensor") ? tensor(json.at("as_tensor")) : constant({});
    }

    template <class One>
    static Argument list(Json const& json, c10::TypePtr const& element, One const& one) {
        std::vector<Argument> items;
        for (auto const& each : json) {
            items.push_back(one(each));
        }
        return list(std::move(items), element);
    }
    static Argument list(std::vector<Argument> items, c10::TypePtr const& element) {
        std::vector<c10::IValue> constants;
        for (auto const& item : items) {
            if (item.kind == Argument::Kind::constant) {
                constants.push_back(item.constant);
            }
        }
        Argument argument;
        argument.element = element;
        if (constants.size() == items.size()) {
            argument.constant = list_of(element, constants);
        } else {
            argument.kind = Argument::Kind::list;
            argument.items = std::move(items);
        }
        return argument;
    }

    /// Of the kind that the JSON names. `element`: of the list that the operator wants, or none.
    Argument plain_argument(Json const& json, c10::TypePtr const& element) {
        auto const& kind = member_name(json);
        auto const& value = member(json);
        auto const of = [&](c10::TypePtr const& type) { return element ? element : type; };
        auto const symbol = [this](Json const& each) { return symbolic(each); };
        if (kind == "as_none") {
            return constant({});
        }
        if (kind == "as_tensor") {
            return tensor(value);
        }
        if (kind == "as_optional_tensor") {
            return optional_tensor(value);
        }
        if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
            return symbolic(value);
        }
        if (kind == "as_int") {
            return constant(value.get<std::int64_t>());
        }
        if (kind == "as_float") {
            return constant(real_of(value));
        }
        if (kind == "as_bool") {
            return constant(value.get<bool>());
        }
        if (kind == "as_string") {
            return constant(value.get<std::string>());
        }
        if (kind == "as_complex") {
            return constant(
                c10::complex<double>(real_of(value.at("real")), real_of(value.at("imag"))));
        }
        if (kind == "as_scalar_type") {
            return constant(static_cast<std::int64_t>(scalar_type_of(value)));
        }
        if (kind == "as_layout") {
            return constant(static_cast<std::int64_t>(layout_of(value)));
        }
        if (kind == "as_memory_format") {
            return constant(static_cast<std::int64_t>(memory_format_of(value)));
        }
        if (kind == "as_device") {
            Argument argument;
            argument.kind = Argument::Kind::device;
            return argument;
        }
        if (kind == "as_graph") {
            Argument argument;
            argument.kind = Argument::Kind::graph;
            argument.graph = GraphReader(depth_ + 1).read(value.at("graph"));
            return argument;
        }
        if (kind == "as_tensors") {
            return list(value, of(c10::TensorType::get()),
                        [this](Json const& each) { return tensor(each); });
        }
        if (kind == "as_optional_tensors") {
            return list(value, of(c10::OptionalType::ofTensor()),
                        [this](Json const& each) { return optional_tensor(each); });
        }
        if (kind == "as_ints") {
            return list(value, of(c10::IntType::get()),
                        [](Json const& each) { return constant(each.get<std::int64_t>()); });
        }
        if (kind == "as_floats") {
            return list(value, of(c10::FloatType::get()),
                        [](Json const& each) { return constant(real_of(each)); });
        }
        if (kind == "as_bools") {
            return list(value, of(c10::BoolType::get()),
                        [](Json const& each) { return constant(each.get<bool>()); });
        }
        if (kind == "as_strings") {
            return list(value, of(c10::StringType::get()),
                        [](Json const& each) { return constant(each.get<std::string>()); });
        }
        if (kind == "as_sym_ints") {
            return list(value, of(c10::IntType::get()), symbol);
        }
        if (kind == "as_sym_floats") {
            return list(value, of(c10::FloatType::get()), symbol);
        }
        if (kind == "as_sym_bools") {
            return list(value, of(c10::BoolType::get()), symbol);
        }
        throw Error(ExitCode::usage, {concat("the exported program has an argument ", kind),
                                      "this version does not support that",
                                      "Give operators only tensors and numbers"});
    }

    /// What LibTorch has as whole numbers, and takes without a look at which they are.
    static void require_kind(Json const& json, c10::Argument const& wanted) {
        auto const kind = plain(wanted.real_type())->kind();
        auto const* const name = kind == c10::TypeKind::ScalarTypeType     ? "as_scalar_type"
                                 : kind == c10::TypeKind::LayoutType       ? "as_layout"
                                 : kind == c10::TypeKind::MemoryFormatType ? "as_memory_format"
                                                                           : nullptr;
        if (name != nullptr && member_name(json) != name && member_name(json) != "as_none") {
            damaged(concat("its argument ", wanted.name(), " is given ", member_name(json),
                           ", where an operator takes ", name));
        }
    }
    Argument argument(Json const& json, c10::Argument const& wanted) {
        require_kind(json, wanted);
        return argument(json, wanted.type(), wanted.N().value_or(0));
    }
    /// As an operator wants it: `count` above 0 means a list that may be given as one number.
    Argument argument(Json const& json, c10::TypePtr const& wanted, int count) {
        auto const type = plain(wanted);
        auto const element = element_of(type);
        auto result = plain_argument(json, element);
        auto const kind = type ? type->kind() : c10::TypeKind::AnyType;
        bool const is_constant = result.kind == Argument::Kind::constant;
        if (kind == c10::TypeKind::FloatType && is_constant && result.constant.isInt()) {
            result.constant = static_cast<double>(result.constant.toInt());
        }
        if (kind == c10::TypeKind::TensorType) {
            if (is_constant) {
                result.constant = number_as_tensor(result.constant);
            } else {
                result.as_tensor = member_name(json) != "as_tensor";
            }
        }
        bool const is_list =
            result.kind == Argument::Kind::list ||
            (is_constant && (result.constant.isList() || result.constant.isNone()));
        if (element && !is_list && count > 0) {
            return list(std::vector<Argument>(static_cast<std::size_t>(count), result), element);
        }
        return result;
    }

    // Nodes.

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
            arguments(node, json);
        } else {
            refuse(node, "this version does not know it");
        }
        for (auto const& output : json.at("outputs")) {
            node.results.push_back(result(node, output));
        }
        require_results(node);
        graph_->nodes.push_back(std::move(node));
    }
    void arguments(Node& node, Json const& json) {
        for (auto const& input : json.at("inputs")) {
            node.arguments.push_back(argument(input.at("arg"), nullptr, 0));
        }
    }
    void nested(Node& node, Json const& json) {
        auto const name = node.target.substr(higher_order.size());
        if (name != "wrap_with_set_grad_enabled" && name != "wrap_with_autocast") {
            refuse(node, concat("the higher-order operator ", name,
                                " is not supported: only no_grad and autocast are"));
        }
        arguments(node, json);
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
            damaged(concat(node.target, " has arguments that do not fit it"));
        }
    }
    void operation(Node& node, Json const& json) {
        auto found = find_operator(node.target);
        if (auto const* const why = std::get_if<std::string>(&found)) {
            refuse(node, *why);
        }
        node.op = std::get<c10::OperatorHandle>(found);
        std::map<std::string, Json const*> given;
        for (auto const& input : json.at("inputs")) {
            given[input.at("name").get<std::string>()] = &input.at("arg");
        }
        for (auto const& wanted : node.op->schema().arguments()) {
            auto const found_argument = given.find(wanted.name());
            if (found_argument != given.end()) {
                node.arguments.push_back(argument(*found_argument->second, wanted));
                given.erase(found_argument);
            } else if (wanted.default_value()) {
                node.arguments.push_back(constant(*wanted.default_value()));
            } else {
                refuse(node, concat("its argument ", wanted.name(), " is missing"));
            }
        }
        if (!given.empty()) {
            refuse(node, concat("it has an argument ", given.begin()->first,
                                ", which this version of LibTorch does not know"));
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
            refuse(node, concat("it returns ", kind, ", which is not supported"));
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
                    damaged(concat(node.target, " has results that do not fit it"));
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
                damaged(concat(node.target, " returns fewer results than are used"));
            }
            return;
        }
        if (node.results.size() > count) {
            damaged(concat(node.target, " returns fewer results than are used"));
        }
    }

    // What a node uses last is given up with it, so that memory is free early.

    static void note_uses(Argument const& argument, std::vector<bool>& used,
                          std::vector<std::size_t>* last) {
        if (argument.kind == Argument::Kind::slot && !used[argument.slot]) {
            used[argument.slot] = true;
            if (last != nullptr) {
                last->push_back(argument.slot);
            }
        }
        for (auto const& item : argument.items) {
            note_uses(item, used, last);
        }
    }
    void find_last_uses() {
        std::vector<bool> used(graph_->slots, false);
        for (auto const& output : graph_->outputs) {
            note_uses(output, used, nullptr);
        }
        for (auto node = graph_->nodes.rbegin(); node != graph_->nodes.rend(); ++node) {
            for (auto const& argument : node->arguments) {
                note_uses(argument, used, &node->last_uses);
            }
            for (auto& result : node->results) {
                for (auto& slot : result.slots) {
                    if (slot && !used[*slot]) {
                        slot.reset();
                    }
                }
            }
        }
    }

    int depth_;
    std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
    std::map<std::string, std::size_t> names_;
};

} // namespace

std::shared_ptr<Graph> read_graph(Json const& json) {
    return GraphReader(0).read(json);
}

std::string origin_of(std::string const& stack) {
    // File "/home/me/model.py", line 8, in forward
    //   x = self.layer(x)
    auto const lines = split(stack, '\n');
    std::string origin;
    for (std::size_t at = 0; at < lines.size(); ++at) {
        auto const words = trimmed(lines[at]);
        bool const of_torch = words.find("/torch/") != std::string::npos ||
                              words.find("\"torch/") != std::string::npos ||
                              words.find("\"<") != std::string::npos; // made on the way
        auto const quote = words.find("\", line ");
        if (!words.starts_with("File \"") || of_torch || quote == std::string::npos) {
            continue;
        }
        auto const rest = words.substr(quote + 3);
        origin = concat(words.substr(6, quote - 6), ", ", rest.substr(0, rest.find(',')));
        if (at + 1 < lines.size()) {
            origin += concat(": ", trimmed(lines[at + 1]));
        }
    }
    return origin;
}

} // namespace lockstep::program

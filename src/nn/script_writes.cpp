#include "script_writes.hpp"

#include "base/text.hpp"
#include "nn/writes.hpp"
#include "program/aliases.hpp"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::nn {

namespace {

namespace jit = torch::jit;
namespace prim = torch::jit::prim;

std::string words_of(jit::Node const& node) {
    // A loaded file's code was made from Python, whose lines are what people know.
    auto const range = node.sourceRange();
    auto const line = range.findSourceRangeThatGenerated().value_or(range).file_line_col();
    return concat(node.kind().toQualString(),
                  line ? concat(" (", std::get<0>(*line), ", line ", std::get<1>(*line), ")") : "");
}

bool is_module(jit::Value const& value) {
    return value.type()->is_module();
}

/// Whether values of this type share memory with others.
bool has_memory(jit::Value const& value) {
    switch (value.type()->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::ComplexType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::DeviceObjType:
        return false;
    default:
        return !is_module(value);
    }
}

bool is_tensor(jit::Value const& value) {
    return value.type()->isSubtypeOf(*c10::TensorType::get());
}

/// Which attributes of a script its forward may change. Values that may share memory are one set,
/// as are a list and its elements.
class AttributeWrites {
  public:
    explicit AttributeWrites(jit::Graph& graph) {
        paths_[graph.inputs().front()] = "";
        read(*graph.block());
    }

    /// By the attributes' paths.
    std::map<std::string, jit::Node const*> found() const {
        auto changed = replaced_;
        for (auto const& [value, by] : written_) {
            bool const any = has_tensors(*by);
            for (auto const& [path, attribute] : attributes_) {
                if (root_of(attribute) == root_of(value) &&
                    (any || is_tensor(*attribute) == is_tensor(*value))) {
                    changed.try_emplace(path, by);
                }
            }
        }
        return changed;
    }

    bool replaces(std::string const& path) const { return replaced_.contains(path); }

  private:
    /// Operators on lists that change the tensors in them.
    static bool has_tensors(jit::Node const& node) {
        return std::string_view(node.kind().toUnqualString()).starts_with("_f") ||
               std::string_view(node.kind().toUnqualString()).starts_with("_amp_f");
    }

    jit::Value const* root_of(jit::Value const* value) const {
        for (auto above = above_.find(value); above != above_.end(); above = above_.find(value)) {
            value = above->second;
        }
        return value;
    }

    void join(jit::Value const* a, jit::Value const* b) {
        if (has_memory(*a) && has_memory(*b) && root_of(a) != root_of(b)) {
            above_[root_of(a)] = root_of(b);
        }
    }

    template <class Values, class Others>
    void join_each(Values const& values, Others const& others) {
        for (std::size_t at = 0; at < std::min<std::size_t>(values.size(), others.size()); ++at) {
            join(values[at], others[at]);
        }
    }

    void join_all(jit::Node const& node) {
        for (auto const* const output : node.outputs()) {
            for (auto const* const input : node.inputs()) {
                join(output, input);
            }
        }
    }

    void read(jit::Block const& block) {
        for (auto const* const node : block.nodes()) {
            read(*node);
        }
    }

    void read(jit::Node const& node) {
        for (auto const* const inner : node.blocks()) {
            read(*inner);
        }
        if (node.kind() == prim::GetAttr && paths_.contains(node.input())) {
            get(node);
        } else if (node.kind() == prim::SetAttr && paths_.contains(node.inputs()[0])) {
            replaced_.try_emplace(paths_[node.inputs()[0]] + node.s(jit::attr::name), &node);
        } else if (node.kind() == prim::If) {
            for (auto const* const inner : node.blocks()) {
                join_each(node.outputs(), inner->outputs());
            }
        } else if (node.kind() == prim::Loop) { // (count, condition, carried…): (number, carried…)
            auto const* const body = node.blocks()[0];
            join_each(node.outputs(), node.inputs().slice(2));
            join_each(node.outputs(), body->inputs().slice(1));
            join_each(node.outputs(), body->outputs().slice(1));
        } else if (node.kind() == prim::Constant) {
            if (node.outputs().size() == 1 && is_tensor(*node.output())) {
                attributes_.try_emplace(concat("a constant of ", words_of(node)), node.output());
            }
        } else if (node.hasAttribute(jit::attr::Subgraph)) {
            auto const& inner = *node.g(jit::attr::Subgraph);
            for (std::size_t at = 0; at < node.inputs().size(); ++at) {
                if (auto const path = paths_.find(node.inputs()[at]); path != paths_.end()) {
                    paths_[inner.inputs()[at]] = path->second;
                }
            }
            join_each(node.inputs(), inner.inputs());
            join_each(node.outputs(), inner.outputs());
            read(*inner.block());
        } else if (auto const* const schema = node.maybeSchema()) {
            call(node, *schema);
        } else {
            join_all(node);
        }
    }

    void get(jit::Node const& node) {
        auto const path = paths_[node.input()] + node.s(jit::attr::name);
        if (is_module(*node.output())) {
            paths_[node.output()] = path + ".";
        } else {
            join(node.output(), attributes_.try_emplace(path, node.output()).first->second);
        }
    }

    void call(jit::Node const& node, c10::FunctionSchema const& schema) {
        auto const count = std::min(node.inputs().size(), schema.arguments().size());
        for (std::size_t at = 0; at < count; ++at) {
            auto const* const input = node.inputs()[at];
            auto const& argument = schema.arguments()[at];
            if (program::is_changed(argument)) {
                written_.emplace_back(input, &node);
            }
            if (argument.alias_info() != nullptr && argument.alias_info()->isWildcardAfter()) {
                join(input, node.inputs()[0]); // it goes into a list
            }
            for (std::size_t place = 0; place < node.outputs().size(); ++place) {
                bool const from_list = place < schema.returns().size() &&
                                       schema.returns()[place].alias_info() != nullptr &&
                                       schema.returns()[place].alias_info()->isWildcardBefore();
                if (from_list || program::may_share(schema, at, place)) {
                    join(input, node.outputs()[place]);
                }
            }
        }
    }

    std::map<jit::Value const*, std::string> paths_; ///< of modules, "layers.0."
    std::map<std::string, jit::Value const*> attributes_;
    std::map<jit::Value const*, jit::Value const*> above_;
    std::vector<std::pair<jit::Value const*, jit::Node const*>> written_;
    std::map<std::string, jit::Node const*> replaced_;
};

} // namespace

std::set<void const*> changed_parameters(jit::Module const& module, std::string const& file,
                                         bool teaches) {
    auto const graph = module.get_method("forward").graph()->copy();
    jit::Inline(*graph);
    AttributeWrites const writes(*graph);
    std::map<std::string, torch::Tensor> parameters;
    for (auto const& parameter : module.named_parameters()) {
        parameters[parameter.name] = parameter.value;
    }
    std::set<std::string> buffers;
    for (auto const& buffer : module.named_buffers()) {
        buffers.insert(buffer.name);
    }
    std::set<void const*> changed;
    for (auto const& [path, by] : writes.found()) {
        if (buffers.contains(path)) {
            continue;
        }
        auto const parameter = parameters.find(path);
        bool const is_parameter = parameter != parameters.end();
        bool const trained = is_parameter && parameter->second.requires_grad() && !teaches;
        if (!is_parameter || trained || writes.replaces(path)) {
            refuse_write({.model = file,
                          .tensor = concat(is_parameter ? "parameter " : "attribute ", path),
                          .by = words_of(*by),
                          .trained = trained});
        }
        changed.insert(parameter->second.unsafeGetTensorImpl());
    }
    return changed;
}

} // namespace lockstep::nn

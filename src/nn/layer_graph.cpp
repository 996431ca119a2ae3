#include "nn/layer_graph.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/traced.hpp"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <set>

namespace lockstep::nn {

namespace {

namespace aten = c10::aten;
namespace prim = c10::prim;

using torch::jit::Node;
using torch::jit::Value;

c10::Symbol old_convolution() {
    return c10::Symbol::fromQualString("aten::_convolution");
}

[[noreturn]] void throw_not_plain(std::string const& why) {
    throw Error(ExitCode::usage, {"this model cannot be quantised", why,
                                  "Choose a model that has only convolutions and fully connected "
                                  "layers"});
}

bool convolves(Node const& node) {
    auto const kind = node.kind();
    return kind == old_convolution() || kind == aten::conv1d || kind == aten::conv2d ||
           kind == aten::conv3d;
}

/// What operators of a list's elements push together.
c10::IValue list_of(Node const& node, std::vector<c10::IValue> const& elements) {
    auto const type = node.output()->type()->expect<c10::ListType>()->getElementType();
    c10::impl::GenericList list(type);
    for (auto const& element : elements) {
        list.push_back(element);
    }
    return list;
}

/// Samples to trace a forward with.
torch::Tensor example_of(Interface const& interface) {
    constexpr std::int64_t samples = 3;
    auto shape = interface.sample_shape;
    shape.insert(shape.begin(), samples);
    bool const tokens = !interface.inputs.empty() && interface.inputs.front().whole;
    return tokens ? torch::zeros(shape, torch::kInt64) : torch::rand(shape);
}

} // namespace

LayerGraph::LayerGraph(Model& model, Interface const& interface)
    : script_(traced(model, example_of(interface))), graph_(script_.get_method("forward").graph()) {
    names_[graph_->inputs().front()] = "";
    for (auto* const node : graph_->nodes()) {
        if (!node->blocks().empty()) {
            throw_not_plain(
                concat("its forward method has branches (", node->kind().toQualString(), ")"));
        }
        if (node->kind() == prim::GetAttr) {
            auto const& parent = names_.at(node->input());
            auto const& own = node->s(c10::attr::name);
            names_[node->output()] = parent.empty() ? own : concat(parent, ".", own);
            continue;
        }
        for (auto const* const input : node->inputs()) {
            if (names_.contains(input)) {
                ++uses_[names_[input]];
            }
        }
    }
    for (auto* const node : graph_->nodes()) {
        if (node->inputs().size() < 2) {
            continue;
        }
        if (auto found = layer_at(*node)) {
            place_[node] = layers_.size();
            found->norm = norm_after(*node);
            layers_.push_back(*found);
            if (layers_.back().norm != nullptr) {
                norms_[layers_.back().norm] = layers_.size() - 1;
            }
            absorb(layers_.back());
        }
    }
    if (layers_.empty()) {
        throw_not_plain("it has no convolution and no fully connected layer");
    }
}

std::string LayerGraph::name_of(Value const* value) const {
    auto const found = names_.find(value);
    return found == names_.end() ? "" : found->second;
}

c10::IValue LayerGraph::constant(Value const* value) const {
    if (auto const known = torch::jit::toIValue(value)) {
        return *known;
    }
    if (value->node()->kind() != prim::ListConstruct) {
        throw_not_plain(
            concat("a setting of one of its layers is not constant, but computed by operator ",
                   value->node()->kind().toQualString()));
    }
    std::vector<c10::IValue> elements;
    for (auto const* const element : value->node()->inputs()) {
        elements.push_back(constant(element));
    }
    return list_of(*value->node(), elements);
}

torch::Tensor LayerGraph::tensor_of(Value const* value) const {
    auto const name = name_of(value);
    if (name.empty()) {
        return {}; // none
    }
    c10::IValue at = script_._ivalue();
    for (auto const& part : split(name, '.')) {
        at = at.toObjectRef().getAttr(part);
    }
    return at.toTensor();
}

/// A convolution; or a fully connected layer, as torch traces it: aten::linear, or a product with
/// the transposed weight, to which the bias is added at once or by another operator.
std::optional<LayerGraph::Found> LayerGraph::layer_at(Node& node) const {
    Found found{&node, node.input(0), node.input(1)};
    auto const kind = node.kind();
    if (convolves(node) || kind == aten::linear) {
        found.bias = node.input(2);
        constexpr std::size_t transposed_at = 6;
        if (kind == old_convolution() && constant(node.input(transposed_at)).toBool()) {
            return std::nullopt;
        }
    } else if (kind == aten::addmm || kind == aten::matmul) {
        bool const adds = kind == aten::addmm;
        auto const* const transposed = node.input(adds ? 2 : 1);
        if (transposed->node()->kind() != aten::t || transposed->uses().size() != 1) {
            return std::nullopt;
        }
        found.weight = transposed->node()->input();
        if (adds) {
            found.bias = node.input(0);
            found.inputs = node.input(1);
            if (constant(node.input(3)).toScalar().toDouble() != 1 ||
                constant(node.input(4)).toScalar().toDouble() != 1) {
                return std::nullopt;
            }
        }
    } else {
        return std::nullopt;
    }
    if (found.bias != nullptr && found.bias->mustBeNone()) {
        found.bias = nullptr;
    }
    auto const is_own = [&](Value const* value) {
        auto const name = name_of(value);
        return !name.empty() && uses_.at(name) == 1;
    };
    bool const fits = is_own(found.weight) && (found.bias == nullptr || is_own(found.bias));
    return fits ? std::optional(found) : std::nullopt;
}

/// The batch norm that alone uses what a layer gives, with tensors of its own.
Node* LayerGraph::norm_after(Node const& node) const {
    auto const& uses = node.output()->uses();
    if (uses.size() != 1 || uses.front().user->kind() != aten::batch_norm ||
        uses.front().offset != 0) {
        return nullptr;
    }
    auto* const norm = uses.front().user;
    constexpr std::size_t tensors = 4;
    constexpr std::size_t training_at = 5;
    for (std::size_t at = 1; at <= tensors; ++at) {
        auto const name = name_of(norm->input(at));
        if (name.empty() || uses_.at(name) != 1) {
            return nullptr;
        }
    }
    return constant(norm->input(training_at)).toBool() ? nullptr : norm;
}

void LayerGraph::absorb(Found const& found) {
    auto const add = [&](Value const* value) {
        if (auto const name = name_of(value); !name.empty()) {
            absorbed_.push_back(name);
        }
    };
    add(found.weight);
    if (found.bias != nullptr) {
        add(found.bias);
    }
    if (found.norm != nullptr) {
        for (std::size_t at = 1; at <= 4; ++at) {
            add(found.norm->input(at));
        }
        auto const mean = name_of(found.norm->input(3));
        absorbed_.push_back(concat(mean.substr(0, mean.rfind('.')), ".num_batches_tracked"));
    }
}

WeightLayer LayerGraph::layer(std::size_t which) const {
    auto const& found = layers_.at(which);
    auto const* const node = found.node;
    auto const* const norm = found.norm;
    WeightLayer layer{name_of(found.weight), tensor_of(found.weight).detach().to(torch::kFloat32),
                      found.bias == nullptr ? torch::Tensor() : tensor_of(found.bias)};
    auto const outputs = layer.values.size(0);
    layer.bias = layer.bias.defined() ? layer.bias.detach().to(torch::kFloat32).clone()
                                      : torch::zeros({outputs});
    layer.factor = torch::ones({outputs});
    if (norm != nullptr) {
        constexpr std::size_t epsilon_at = 7;
        auto const variance = tensor_of(norm->input(4));
        auto const factor = tensor_of(norm->input(1)).detach() /
                            (variance + constant(norm->input(epsilon_at)).toDouble()).sqrt();
        std::vector<std::int64_t> shape(static_cast<std::size_t>(layer.values.dim()), 1);
        shape.front() = outputs;
        layer.factor = factor;
        layer.values = layer.values * factor.view(shape);
        layer.bias =
            (layer.bias - tensor_of(norm->input(3))) * factor + tensor_of(norm->input(2)).detach();
    }
    if (convolves(*node)) {
        auto const list = [&](std::size_t at) {
            auto values = constant(node->input(at)).toIntVector();
            // One for all places.
            values.resize(static_cast<std::size_t>(layer.values.dim() - 2), values.front());
            return values;
        };
        layer.convolves = true;
        layer.stride = list(3);
        layer.padding = list(4);
        layer.dilation = list(5);
        layer.groups = constant(node->input(node->kind() == old_convolution() ? 8 : 6)).toInt();
    }
    return layer;
}

torch::Tensor LayerGraph::run(torch::Tensor const& inputs, Compute const& compute) const {
    torch::NoGradGuard const no_grad;
    std::map<Value const*, c10::IValue> values;
    values[graph_->inputs().at(0)] = script_._ivalue();
    values[graph_->inputs().at(1)] = inputs;
    std::vector<char> replaced(layers_.size(), 0);
    for (auto* const node : graph_->nodes()) {
        if (node->kind() == prim::GetAttr) {
            values[node->output()] =
                values.at(node->input()).toObjectRef().getAttr(node->s(c10::attr::name));
            continue;
        }
        if (node->kind() == prim::Constant) {
            values[node->output()] = torch::jit::toIValue(node->output()).value_or(c10::IValue());
            continue;
        }
        if (auto const layer = place_.find(node); layer != place_.end()) {
            auto const& given = values.at(layers_[layer->second].inputs).toTensor();
            if (auto result = compute(layer->second, given)) {
                replaced[layer->second] = 1;
                values[node->output()] = *result;
                continue;
            }
        }
        if (auto const norm = norms_.find(node); norm != norms_.end() && replaced[norm->second]) {
            values[node->output()] = values.at(node->input(0));
            continue;
        }
        torch::jit::Stack stack;
        for (auto const* const input : node->inputs()) {
            stack.push_back(values.at(input));
        }
        if (node->kind() == prim::ListConstruct) {
            values[node->output()] = list_of(*node, stack);
            continue;
        }
        if (node->kind() == aten::view && !stack.front().toTensor().is_contiguous()) {
            stack.front() = stack.front().toTensor().contiguous(); // an int8 layer's own order
        }
        node->getOperation()(stack);
        for (std::size_t at = 0; at < node->outputs().size(); ++at) {
            values[node->outputs()[at]] = stack.at(at);
        }
    }
    return values.at(graph_->outputs().at(0)).toTensor();
}

} // namespace lockstep::nn

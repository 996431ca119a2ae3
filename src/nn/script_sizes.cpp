#include "script_sizes.hpp"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <optional>

#include "script_nodes.hpp"

namespace lockstep::nn {

namespace {

namespace jit = torch::jit;

/// Where a convolution's arguments are, and its channels in its input.
struct Convolution {
    std::size_t groups_at = 0;
    std::int64_t channels_at = 0;
};

std::optional<Convolution> convolution_of(jit::Node const& node) {
    constexpr std::size_t groups_at = 6;
    if (node.kind() == c10::Symbol::fromQualString("aten::_convolution_mode")) {
        return Convolution{groups_at, 1}; // of a traced script, padding = "same"
    }
    switch (node.kind()) {
    case c10::aten::conv1d:
        return Convolution{groups_at, -2};
    case c10::aten::conv2d:
        return Convolution{groups_at, -3};
    case c10::aten::conv3d:
        return Convolution{groups_at, -4};
    case c10::aten::_convolution: // of traced scripts
    case c10::aten::convolution: {
        auto const transposed = jit::toIValue(node.input(groups_at));
        return transposed && !transposed->toBool() ? std::optional(Convolution{groups_at + 2, 1})
                                                   : std::nullopt;
    }
    default:
        return std::nullopt;
    }
}

class Rewriter {
  public:
    bool has_changed() const { return has_changed_; }

    void change(jit::Node& node) {
        if (auto const form = convolution_of(node)) {
            set_groups(node, *form);
        } else if (node.kind() == c10::aten::layer_norm ||
                   node.kind() == c10::Symbol::fromQualString("aten::rms_norm")) {
            set_shape(node);
        }
    }

  private:
    /// The channels of the input that each output sees are those of the weight.
    void set_groups(jit::Node& node, Convolution const& form) {
        auto const written = jit::toIValue(node.input(form.groups_at));
        if (written && written->toInt() == 1) {
            return;
        }
        has_changed_ = true;
        jit::WithInsertPoint const before(&node);
        auto& graph = *node.owningGraph();
        auto* const all = graph.insert(c10::aten::size, {node.input(0), form.channels_at});
        auto* const each = graph.insert(c10::aten::size, {node.input(1), 1});
        node.replaceInput(form.groups_at, graph.insert(c10::aten::floordiv, {all, each}));
    }

    /// Makes a norm over the last extents take its shape from its input.
    void set_shape(jit::Node& node) {
        has_changed_ = true;
        jit::WithInsertPoint const before(&node);
        auto& graph = *node.owningGraph();
        auto* const sizes = graph.insert(c10::aten::size, {node.input(0)});
        auto* const count = graph.insert(c10::aten::len, {node.input(1)});
        auto* const first = graph.insert(c10::aten::neg, {count});
        node.replaceInput(1, graph.insert(c10::aten::slice, {sizes, first}));
    }

    bool has_changed_ = false;
};

} // namespace

bool take_sizes_from_tensors(torch::jit::Module const& module) {
    Rewriter rewriter;
    for_nodes(module, [&](jit::Node& node) { rewriter.change(node); });
    return rewriter.has_changed();
}

} // namespace lockstep::nn

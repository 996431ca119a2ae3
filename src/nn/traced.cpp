#include "nn/traced.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"
#include "program/operators.hpp"
#include "program/recurrent.hpp"

#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace lockstep::nn {

namespace {

/// The module's tensors, not copies of them, under the same names in a script without methods.
torch::jit::Module skeleton(torch::nn::Module const& module, std::string const& name,
                            std::shared_ptr<torch::jit::CompilationUnit> const& unit) {
    torch::jit::Module script(c10::QualifiedName(concat("__torch__.lockstep.", name)), unit,
                              /*shouldMangle=*/true);
    for (auto const& item : module.named_parameters(/*recurse=*/false)) {
        script.register_parameter(item.key(), item.value(), /*is_buffer=*/false);
    }
    for (auto const& item : module.named_buffers(/*recurse=*/false)) {
        script.register_buffer(item.key(), item.value());
    }
    for (auto const& child : module.named_children()) {
        script.register_module(child.key(), skeleton(*child.value(), "Part", unit));
    }
    return script;
}

/// What a value of a trace follows from, itself included.
std::unordered_set<torch::jit::Value*> origins_of(torch::jit::Value* value) {
    std::unordered_set<torch::jit::Value*> seen;
    std::vector<torch::jit::Value*> waiting{value};
    while (!waiting.empty()) {
        auto* const each = waiting.back();
        waiting.pop_back();
        if (seen.insert(each).second) {
            auto const before = each->node()->inputs();
            waiting.insert(waiting.end(), before.begin(), before.end());
        }
    }
    return seen;
}

bool draws_always(torch::jit::Node const& node) {
    auto const* const schema = node.maybeSchema();
    auto const op =
        schema == nullptr
            ? std::nullopt
            : c10::Dispatcher::singleton().findSchema({schema->name(), schema->overload_name()});
    return op && program::draws_always(*op);
}

/// A recurrent layer whose first state has the size of the traced batch would read past that state
/// with another batch: LibTorch does not check it. One whose first state is random gives other
/// outputs each time.
void require_free_states(torch::jit::Graph& graph) {
    for (auto* const node : graph.nodes()) {
        auto const name = std::string_view(node->kind().toQualString());
        if (!program::is_recurrent(name)) {
            continue;
        }
        // (data, batch sizes, state, weights…) of packed rows, else (input, state, weights…)
        bool const packed = node->input(3)->type()->kind() == c10::TypeKind::ListType;
        auto const origins = origins_of(node->input(packed ? 2 : 1));
        std::string const refused = "this model cannot be exported as TorchScript or quantised";
        auto const drawn = std::ranges::find_if(
            origins, [](auto const* origin) { return draws_always(*origin->node()); });
        if (drawn != origins.end()) {
            throw Error(ExitCode::usage,
                        {refused,
                         concat("operator ", (*drawn)->node()->kind().toQualString(),
                                " sets the initial state of the recurrent layer ", name,
                                " to random values"),
                         "Let the layer start from zeros or from a parameter, or use --format "
                         "safetensors and load the weights by name"});
        }
        bool const follows_from_inputs = std::ranges::any_of(origins, [&](auto const* origin) {
            return origin->node()->kind() == torch::jit::prim::Param &&
                   origin != graph.inputs().front(); // the module
        });
        if (!follows_from_inputs) {
            throw Error(ExitCode::usage,
                        {refused,
                         concat("the initial state of the recurrent layer ", name,
                                " would keep the batch size of the trace"),
                         "Try --format onnx, or use --format safetensors and load the weights by "
                         "name"});
        }
    }
}

} // namespace

torch::jit::Module traced(Model& model, torch::Tensor const& inputs) {
    auto script = skeleton(model, "Model", std::make_shared<torch::jit::CompilationUnit>());
    auto const trace = torch::jit::tracer::trace(
        {inputs},
        [&](torch::jit::Stack const& stack) -> torch::jit::Stack {
            return {model.forward(Fields(stack.front().toTensor()))};
        },
        [](torch::autograd::Variable const&) { return std::string(); },
        /*strict=*/true, /*force_outplace=*/false, &script, {"inputs"});
    require_free_states(*trace.first->graph);
    auto* const forward = script._ivalue()->compilation_unit()->create_function(
        c10::QualifiedName(*script.type()->name(), "forward"), trace.first->graph);
    script.type()->addMethod(forward);
    return script;
}

std::optional<std::int64_t>
differing_batch(Model& model, std::function<torch::Tensor(torch::Tensor const&)> const& trace,
                std::function<torch::Tensor(std::int64_t count)> const& inputs) {
    EvaluationMode const evaluation(model);
    constexpr std::uint64_t key = 0; // of the same random numbers, where they draw any
    for (std::int64_t const count : {1, 2, 5}) {
        auto const samples = inputs(count);
        try {
            evaluation.begin(key);
            torch::manual_seed(key);
            auto const found = trace(samples.clone()); // either may change its inputs
            evaluation.begin(key);
            auto const wanted = model.forward(Fields(samples.clone()));
            if (found.sizes() == wanted.sizes() &&
                torch::allclose(found, wanted, 1e-4, 1e-5, /*equal_nan=*/true)) {
                continue;
            }
        } catch (c10::Error const&) {
            return samples.size(0);
        } catch (std::runtime_error const&) { // as the interpreter tells it
            return samples.size(0);
        }
        return samples.size(0);
    }
    return std::nullopt;
}

} // namespace lockstep::nn

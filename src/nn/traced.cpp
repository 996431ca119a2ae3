#include "nn/traced.hpp"

#include "base/text.hpp"

#include <torch/csrc/jit/frontend/tracer.h>

#include <stdexcept>

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
    auto* const forward = script._ivalue()->compilation_unit()->create_function(
        c10::QualifiedName(*script.type()->name(), "forward"), trace.first->graph);
    script.type()->addMethod(forward);
    return script;
}

std::optional<std::int64_t>
differing_batch(Model& model, std::function<torch::Tensor(torch::Tensor const&)> const& trace,
                std::function<torch::Tensor(std::int64_t count)> const& inputs) {
    for (std::int64_t const count : {1, 2, 5}) {
        auto const samples = inputs(count);
        try {
            auto const found = trace(samples);
            auto const wanted = model.forward(Fields(samples));
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

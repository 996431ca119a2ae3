#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::nn {

/// An operator that was called with something that depends on the inputs.
struct RecordedCall {
    std::string name; ///< "aten::relu": of "aten::relu_", too, whose result replaces its argument
    c10::FunctionSchema const* schema = nullptr;
    std::vector<c10::IValue> arguments; ///< as they were before the call
    /// Which value each tensor in the arguments is, lists item by item: its number, or nothing
    /// where it depends on no input.
    std::vector<std::optional<std::size_t>> values;
    std::vector<torch::Tensor> results; ///< the next values, in order; their form lasts
    std::string place{};    ///< " (in module layers.0, net.py, line 8: …)"; empty if not known
    std::string drawn_by{}; ///< the operator that drew a constant of the arguments, if it is random
};

/// What a function of tensors did with its inputs: they are the first values.
struct Recording {
    std::vector<torch::Tensor> inputs;
    std::vector<RecordedCall> calls;
    std::size_t output = 0; ///< number of the value that it returned
};

/// Runs `function` eagerly and notes which operators LibTorch's dispatcher called, whoever calls
/// them: our modules, a TorchScript, an exported program. Where an operator is not in `known` and
/// is made of others, those are recorded. What depends on no input is computed but not recorded.
///
/// Throws  Error 64 for what calls cannot represent: a decision by an input's values, a write into
///         part of a tensor
Recording
record_calls(std::function<torch::Tensor(std::vector<torch::Tensor> const&)> const& function,
             std::vector<torch::Tensor> const& inputs, std::set<std::string> const& known);

/// Whether `record_calls` is recording this thread's calls.
bool is_recording();

/// Throws the error for what cannot be exported, with the reason, if there is more to say.
[[noreturn]] void refuse_export(std::string const& what, std::string const& why = {},
                                std::string const& change = "Change that part of the model");

/// Throws the error for packed sequences, if there are any: which rows they have depends on values.
void refuse_packed(Recording const& recording);

} // namespace lockstep::nn

#include "foreign.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/to_device.hpp"

namespace lockstep::nn {

std::vector<torch::Tensor> arguments_of(Fields const& inputs) {
    std::vector<torch::Tensor> arguments;
    for (auto const& field : inputs) {
        arguments.push_back(field.padded());
        if (field.lengths.defined()) {
            arguments.push_back(to_device(field.lengths, field.values.device()));
        }
    }
    return arguments;
}

std::string forms_of(std::vector<torch::Tensor> const& arguments) {
    std::vector<std::string> forms;
    forms.reserve(arguments.size());
    for (auto const& argument : arguments) {
        forms.push_back(concat(argument.scalar_type() == torch::kInt64 ? "int64 " : "float32 ",
                               sizes_text(argument.sizes())));
    }
    return joined(forms, " and ");
}

Fields empty_samples(Interface const& interface, std::int64_t count) {
    auto shape = interface.sample_shape;
    shape.insert(shape.begin(), count);
    return interface.inputs.empty() ? Fields(torch::zeros(shape))
                                    : zeros(interface.inputs, count, torch::kCPU);
}

torch::Tensor require_outputs(std::string const& file, c10::IValue const& result,
                              std::vector<torch::Tensor> const& arguments, std::int64_t samples,
                              std::int64_t outputs) {
    bool const is_batch =
        result.isTensor() && result.toTensor().dim() >= 1 && result.toTensor().size(0) == samples;
    bool const fits =
        is_batch &&
        (outputs == 0 || (result.toTensor().dim() >= 2 && result.toTensor().size(1) == outputs) ||
         (result.toTensor().dim() > 2 && result.toTensor().size(-1) == outputs));
    if (!fits && outputs == 0) {
        throw Error(ExitCode::usage,
                    {concat(file, " does not return a tensor of ", amount_of(samples, "sample"),
                            " for a batch of ", forms_of(arguments)),
                     "a model that is exported or pruned returns outputs for each sample",
                     "Save a model that returns one tensor whose first dimension is the batch"});
    }
    if (!fits) {
        throw Error(
            ExitCode::usage,
            {concat(file, " returns ",
                    result.isTensor() ? concat("shape ", sizes_text(result.toTensor().sizes()))
                                      : result.tagKind(),
                    " for a batch of ", forms_of(arguments)),
             concat("the task needs [", samples, ", ", outputs, "]"),
             concat("Export a model that returns ", amount_of(outputs, "number"),
                    " for each sample, position or time step")});
    }
    return result.toTensor();
}

} // namespace lockstep::nn

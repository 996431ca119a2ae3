#include "try_backward.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <c10/util/Exception.h>

namespace lockstep::nn {

namespace {

/// Hears of the operator without a derivative, at which LibTorch only warns: the gradient is then
/// zero, unless the kernel calls operators that have one.
struct MissingDerivative : c10::WarningHandler {
    void process(c10::Warning const& warning) override {
        auto const at = warning.msg().find(": an autograd kernel was not registered");
        if (at != std::string::npos) {
            of = warning.msg().substr(0, at);
        } else {
            c10::WarningHandler::process(warning);
        }
    }

    std::string of;
};

} // namespace

void try_backward(std::string const& file, Model const& model, torch::Tensor const& total) {
    if (!total.requires_grad()) {
        throw Error(
            ExitCode::usage,
            {concat(file, " cannot be trained"), "its result does not depend on its parameters",
             "Export the model outside torch.no_grad, with parameters that require gradients"});
    }
    MissingDerivative missing;
    try {
        c10::WarningUtils::WarningHandlerGuard const listening(&missing);
        total.backward();
    } catch (c10::OutOfMemoryError const&) {
        throw;
    } catch (c10::Error const& error) {
        throw Error(ExitCode::usage, {concat(file, " cannot be trained"),
                                      split(error.what_without_backtrace(), '\n').front(),
                                      "Use only operators that have a derivative, or detach "
                                      "the inputs of the other operators"});
    }
    if (!missing.of.empty()) {
        throw Error(
            ExitCode::usage,
            {concat(file, " cannot be trained"),
             concat("operator ", missing.of,
                    " has no autograd kernel, so its gradients may be missing or wrong"),
             "In the operator's library, register a derivative for Autograd. If the operator "
             "only calls PyTorch's operators, register its kernel for "
             "CompositeImplicitAutograd instead. Or detach the operator's inputs"});
    }
    for (auto const& parameter : model.named_parameters()) {
        if (parameter.value().grad().defined() && parameter.value().grad().is_sparse()) {
            throw Error(ExitCode::usage,
                        {concat(file, " cannot be trained"),
                         concat("the gradient of parameter ", parameter.key(),
                                " is sparse, but gradients of replicas are added as dense arrays"),
                         "Make the layer with sparse=False, and export the model again"});
        }
    }
}

} // namespace lockstep::nn

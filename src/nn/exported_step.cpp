#include "exported_step.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <utility>

namespace lockstep::nn {

namespace {

struct Misfit {
    std::string why;
    std::string next;
};

/// Why a compiled step does not do what the deck asks for; nothing where it does.
std::optional<Misfit> misfit(program::Archive const& archive, Interface const& interface) {
    std::string const leave_out = "Set model.compiled = none";
    if (interface.outputs != 0) {
        return Misfit{"compiled steps are only for task.kind = export, with a file that has a loss",
                      leave_out};
    }
    if (interface.recompute || interface.sync_batch_norm) {
        return Misfit{concat("a compiled step does not support ",
                             interface.recompute ? "precision.gradient-checkpointing"
                                                 : "communication.sync-batch-norm"),
                      leave_out};
    }
    if (interface.autocast) {
        return Misfit{"a compiled step computes in float32, but precision.compute names another "
                      "type",
                      "Set precision.compute = fp32, or model.compiled = none"};
    }
    if (interface.on_device) {
        return Misfit{"a compiled step runs on CPUs only, but this run uses an accelerator",
                      "Set run.device = cpu, or model.compiled = none"};
    }
    if (interface.loses_channels) {
        return Misfit{"the step was compiled for all channels, but prune.pattern = channels "
                      "removes some",
                      leave_out};
    }
    auto why = program::CompiledStep::misfit(archive);
    if (why.empty()) {
        return std::nullopt;
    }
    return Misfit{std::move(why), "Compile the step for this machine and deck with "
                                  "lockstep_export.compile(FILE), or set model.compiled = none"};
}

} // namespace

ExportedStep::ExportedStep(program::Archive const& archive, std::string const& wish,
                           Interface const& interface, program::Program const& train,
                           std::vector<torch::Tensor> parameters)
    : file_(archive.path().string()), parameters_(std::move(parameters)), elements_(elements()) {
    if (wish != "none" && wish != "prefer" && wish != "require") {
        throw Error(ExitCode::usage, {concat("model.compiled = ", wish),
                                      "expected none, prefer or require", "Choose one of them"});
    }
    if (wish == "none") {
        return;
    }
    auto const why_not = misfit(archive, interface);
    if (!why_not) {
        step_.emplace(archive, train);
    } else if (wish == "require") {
        throw Error(ExitCode::usage,
                    {concat(file_, " cannot be trained with model.compiled = require"),
                     why_not->why, why_not->next});
    } else {
        remark_ = concat("model.compiled = prefer: the graph of ", file_,
                         " runs instead of a compiled step, because ", why_not->why);
    }
}

std::vector<torch::Tensor> ExportedStep::run(std::vector<torch::Tensor> const& arguments) {
    if (elements() != elements_) { // native code reads as many weights as it was compiled for
        throw Error(ExitCode::usage, {concat("the compiled step of ", file_, " cannot be used"),
                                      "the step was compiled for all channels, but some channels "
                                      "of this model have been removed",
                                      "Set model.compiled = none"});
    }
    return step_.value().run(arguments);
}

void ExportedStep::settle() const {
    if (step_) {
        step_->settle();
    }
}

std::int64_t ExportedStep::elements() const {
    std::int64_t sum = 0;
    for (auto const& parameter : parameters_) {
        sum += parameter.numel();
    }
    return sum;
}

} // namespace lockstep::nn

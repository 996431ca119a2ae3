#include "native_code.hpp"

#include "base/file.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>
#if __has_include(<torch/csrc/shim_exception_state.h>)
#include <torch/csrc/shim_exception_state.h>
#endif

#include "program/step_operators.hpp"

#include <stdexcept>

#include "torch_errors.hpp"

namespace lockstep::program {

namespace {

#if __has_include(<torch/csrc/shim_exception_state.h>)
void forget_inner_reason() {
    torch::csrc::shim::details::set_torch_exception_what_without_backtrace({});
}

/// What an operator within the step has thrown: AOTInductor itself says only that a call failed.
std::string reason_of(std::exception const& error) {
    auto const& inner = torch::csrc::shim::details::get_torch_exception_what_without_backtrace();
    return split(inner.empty() ? error.what() : inner, '\n').front();
}
#else
void forget_inner_reason() {}

std::string reason_of(std::exception const& error) {
    return split(error.what(), '\n').front();
}
#endif

} // namespace

NativeCode::NativeCode(Archive const& archive, std::string const& record)
    : file_(archive.path().string()) {
    register_step_operators();
    ScratchDirectory const directory; // a library is loaded from a file
    auto const library = directory.path() / "step.so";
    write_text_durably(library, archive.text(record + ".so"));
    if (archive.has(record + ".json")) {
        write_text_durably(directory.path() / "step.json", archive.text(record + ".json"));
    }
    try {
        runner_ =
            std::make_unique<torch::inductor::AOTIModelContainerRunnerCpu>(library.string(), 1);
    } catch (std::exception const& error) {
        throw Error(
            ExitCode::unavailable,
            {concat("the compiled step of ", file_, " cannot be loaded"),
             split(error.what(), '\n').front(),
             "Set TMPDIR to a directory on a file system that is not mounted noexec, compile the "
             "step again with lockstep_export.compile(FILE), or set model.compiled = none"});
    }
}

NativeCode::~NativeCode() = default;

std::vector<at::Tensor> NativeCode::run(std::vector<at::Tensor> inputs) {
    forget_inner_reason();
    try {
        return runner_->boxed_run(std::move(inputs));
    } catch (std::exception const& error) {
        auto const why = reason_of(error);
        if (auto const known = error_of_torch(why); known && known->code() == ExitCode::memory) {
            throw *known;
        }
        if (why.find("vector size to be") != std::string::npos) {
            throw Error(ExitCode::data,
                        {concat("the compiled step of ", file_, " cannot run"), why,
                         "Compile the step again with lockstep_export.compile(FILE)"});
        }
        throw Error(ExitCode::usage,
                    {concat("the compiled step of ", file_, " failed"), why,
                     "Check that each class and token in the data is below the size that the model "
                     "was built with. Otherwise, compile the step again with "
                     "lockstep_export.compile(FILE), or set model.compiled = none"});
    }
}

} // namespace lockstep::program

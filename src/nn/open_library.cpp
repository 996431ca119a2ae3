#include "open_library.hpp"

#include "base/loader_reason.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <torch/version.h>

#include <dlfcn.h>
#include <filesystem>

#include "program/operators.hpp"

namespace lockstep::nn {

void* open_library(std::string const& what, std::string const& file, std::string const& correct) {
    auto const failed = concat(what, " ", file, " cannot be loaded");
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
        throw Error(ExitCode::no_input, {failed, "the file does not exist", correct});
    }
    program::note_operators_of_torch();
    // With a slash, so that it is this file and not one on the loader's path.
    void* const library = ::dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW);
    if (library == nullptr) {
        throw Error(
            ExitCode::unavailable,
            {failed, loader_reason(),
             concat("Build it against this installation, which has LibTorch ", TORCH_VERSION)});
    }
    return library;
}

} // namespace lockstep::nn

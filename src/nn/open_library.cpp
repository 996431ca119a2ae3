#include "open_library.hpp"

#include "base/file.hpp"
#include "base/loader_reason.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/operators.hpp"

#include <torch/version.h>

#include <dlfcn.h>
#include <filesystem>

namespace lockstep::nn {

namespace {

/// The version in a library's text for this; empty: it has none.
std::string_view torch_version_in(std::string_view library) {
    constexpr std::string_view stamp = "lockstep_torch_version=";
    auto const at = library.find(stamp);
    if (at == std::string_view::npos) {
        return {};
    }
    library.remove_prefix(at + stamp.size());
    return library.substr(0, library.find('\0'));
}

/// Symbols of LibTorch change with its version. The loader's text begins with the library that it
/// lacks.
Error not_loaded(std::string const& failed, std::string const& build_it) {
    auto const reason = loader_reason();
    if (reason.find("undefined symbol") != std::string::npos) {
        return {ExitCode::unavailable,
                {failed, concat("it was probably built for another LibTorch: ", reason), build_it}};
    }
    bool const lacks_library = reason.starts_with("lib") &&
                               reason.find("cannot open shared object file") != std::string::npos;
    if (lacks_library && reason.starts_with("libtorch_python")) {
        return {ExitCode::unavailable,
                {failed, reason, concat(build_it, ", and do not link it with libtorch_python")}};
    }
    if (lacks_library && !reason.starts_with("libtorch") && !reason.starts_with("libc10")) {
        return {ExitCode::unavailable,
                {failed, concat("it needs a library that was not found: ", reason),
                 "Load the module of the missing library, or add its directory to "
                 "LD_LIBRARY_PATH"}};
    }
    return {ExitCode::unavailable, {failed, reason, build_it}};
}

} // namespace

void* open_library(std::string const& what, std::string const& file, std::string const& correct) {
    auto const failed = concat(what, " ", file, " cannot be loaded");
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
        throw Error(ExitCode::no_input, {failed, "the file does not exist", correct});
    }
    // With a slash, so that it is this file and not one on the loader's path.
    auto const path = std::filesystem::absolute(file);
    if (void* const loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
        return loaded; // it was looked at before
    }
    auto const build_it =
        concat("Build the library again for this installation, which has LibTorch ", TORCH_VERSION);
    auto const content = read_text(file);
    if (!content.starts_with("\177ELF")) {
        throw Error(ExitCode::unavailable, {failed, "it is not a shared library", correct});
    }
    auto const version = torch_version_in(content);
    if (!version.empty() && version != TORCH_VERSION) {
        throw Error(ExitCode::unavailable,
                    {failed, concat("it was built for LibTorch ", version), build_it});
    }
    program::note_operators_of_torch();
    void* const library = ::dlopen(path.c_str(), RTLD_NOW);
    if (library == nullptr) {
        throw not_loaded(failed, build_it);
    }
    return library;
}

} // namespace lockstep::nn

#include "lockstep/nn/plugin.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <dlfcn.h>
#include <filesystem>

#include "models.hpp"

namespace lockstep::nn {

namespace {

/// As dlerror, where it says nothing.
std::string reason() {
    auto const* const text = ::dlerror();
    return text == nullptr ? "the loader does not say why" : text;
}

void* opened(std::string const& file) {
    if (file == "self") {
        return ::dlopen(nullptr, RTLD_NOW);
    }
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
        throw Error(ExitCode::no_input, {concat("the plug-in ", file), "there is no such file",
                                         "Correct model.name = plugin:LIBRARY:NAME"});
    }
    // With a slash, so that it is this file and not one on the loader's path.
    void* const library = ::dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW);
    if (library == nullptr) {
        throw Error(ExitCode::unavailable, {concat("the plug-in ", file, " cannot be loaded"),
                                            reason(), "Build it against this installation"});
    }
    return library;
}

void require_same(std::string const& file, std::string const& what, std::string_view its,
                  std::string_view ours) {
    if (its != ours) {
        throw Error(ExitCode::unavailable,
                    {concat("the plug-in ", file, " was built with ", what, " ", its),
                     concat("this program has ", ours), "Build it against this installation"});
    }
}

} // namespace

std::vector<ModelKind> plugin_models(std::string const& file) {
    auto const* const plugin =
        static_cast<ModelPlugin const*>(::dlsym(opened(file), model_plugin_symbol));
    if (plugin == nullptr || plugin->form != ModelPlugin{}.form) {
        throw Error(ExitCode::unavailable,
                    {concat(file, " is no plug-in"),
                     plugin == nullptr ? concat("it does not show ", model_plugin_symbol)
                                       : "its form is another",
                     "Define its models with LOCKSTEP_MODELS of lockstep/nn/plugin.hpp"});
    }
    require_same(file, "headers", plugin->build_id, LOCKSTEP_BUILD_ID);
    require_same(file, "LibTorch", plugin->torch_version, TORCH_VERSION);
    std::vector<ModelKind> kinds;
    plugin->append(kinds);
    return kinds;
}

} // namespace lockstep::nn

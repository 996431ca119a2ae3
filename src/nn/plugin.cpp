#include "lockstep/nn/plugin.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/find_kind.hpp"

#include <dlfcn.h>

#include "open_library.hpp"

namespace lockstep::nn {

namespace {

constexpr std::string_view prefix = "plugin:";

void* opened(PluginUse const& use, std::string const& file) {
    if (file == "self") {
        return ::dlopen(nullptr, RTLD_NOW);
    }
    return open_library("the plug-in", file, concat("Correct ", use.key, " = plugin:LIBRARY:NAME"));
}

void require_same(std::string const& file, std::string const& what, std::string_view its,
                  std::string_view ours) {
    if (its != ours) {
        throw Error(ExitCode::unavailable,
                    {concat("the plug-in ", file, " cannot be used"),
                     concat("it was built with ", what, " ", its, ", but this program has ", ours),
                     "Build the plug-in again for this installation"});
    }
}

} // namespace

bool names_plugin(std::string const& value) {
    return value.starts_with(prefix);
}

std::string library_of(std::string const& key, std::string const& value) {
    auto const colon = value.rfind(':');
    if (colon <= prefix.size() || colon + 1 == value.size()) {
        throw Error(ExitCode::usage,
                    {concat(key, " = ", value), "the value must have the form plugin:LIBRARY:NAME",
                     "Write the path of the shared library for LIBRARY, and a name that the "
                     "library registers for NAME"});
    }
    return value.substr(prefix.size(), colon - prefix.size());
}

PluginHead const& open_plugin(PluginUse const& use, std::string const& value) {
    auto const file = library_of(use.key, value);
    auto const* const head = static_cast<PluginHead const*>(::dlsym(opened(use, file), use.symbol));
    if (head == nullptr) {
        throw Error(ExitCode::unavailable,
                    {concat(file, " is not a plug-in for ", use.key),
                     concat("the library does not define ", use.symbol),
                     concat("In the library's source, register the plug-in with ", use.macro,
                            "(...) (see docs/library.md)")});
    }
    if (head->form != PluginHead{}.form) {
        throw Error(ExitCode::unavailable,
                    {concat("the plug-in ", file, " cannot be used"),
                     "it was built for another version of the plug-in interface",
                     "Build the plug-in again for this installation"});
    }
    require_same(file, "headers", head->build_id, LOCKSTEP_BUILD_ID);
    require_same(file, "LibTorch", head->torch_version, TORCH_VERSION);
    return *head;
}

void throw_unknown_kind(PluginUse const& use, std::string const& value, std::string const& wanted,
                        std::vector<std::string> const& names) {
    auto const near = nearest_name(wanted, names);
    auto const its_keys =
        names_plugin(value) ? "" : concat(" (its keys: ", use.list, " ", near, ")");
    throw Error(ExitCode::usage,
                {concat(use.key, " = ", value), concat("expected one of ", joined(names, ", ")),
                 near.empty() ? concat("Choose one of them (", use.list, " lists them)")
                              : concat("Did you mean ", near, "?", its_keys)});
}

} // namespace lockstep::nn

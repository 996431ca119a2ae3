#pragma once

#include "lockstep/nn/plugin_head.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::nn {

/// One use of plug-ins (models or tasks): where a deck names it, and what the plug-in has to
/// export.
struct PluginUse {
    char const* key;    ///< of the deck, "model.name"
    char const* symbol; ///< that a library, or the program itself, exports
    char const* macro;  ///< that defines it
    char const* list;   ///< the command that lists the built-in ones
};

/// Whether a deck's value names one of a plug-in.
bool names_plugin(std::string const& value);

/// LIBRARY of "plugin:LIBRARY:NAME", the value of `key`; "self" for what is linked into the
/// program.
///
/// Throws  Error 64 for another form
std::string library_of(std::string const& key, std::string const& value);

/// The head of the library that "plugin:LIBRARY:NAME" means, of the program for "self", when it
/// was built as this program was. The library stays loaded.
///
/// Throws  Error 64 for another form of name; 66 for a missing file; 69 for one that cannot be
///         loaded, is not a plug-in, or was compiled against other headers or LibTorch
PluginHead const& open_plugin(PluginUse const& use, std::string const& value);

/// Throws the error that `wanted` is not among `names`.
[[noreturn]] void throw_unknown_kind(PluginUse const& use, std::string const& value,
                                     std::string const& wanted,
                                     std::vector<std::string> const& names);

/// The kind that a deck's `value` names: one of `ours`, or of a plug-in.
///
/// Throws  as open_plugin; Error 64 when there is none of that name, with the nearest
template <class Kind>
Kind find_kind(PluginUse const& use, std::string const& value, std::vector<Kind> ours) {
    auto wanted = value;
    if (names_plugin(value)) {
        ours.clear();
        reinterpret_cast<Plugin<Kind> const&>(open_plugin(use, value)).append(ours);
        wanted = value.substr(value.rfind(':') + 1);
    }
    std::vector<std::string> names;
    for (auto const& kind : ours) {
        names.push_back(kind.name);
        if (kind.name == wanted) {
            return kind;
        }
    }
    throw_unknown_kind(use, value, wanted, names);
}

} // namespace lockstep::nn

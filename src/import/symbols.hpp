#pragma once

#include <string>
#include <vector>

namespace lockstep::import {

/// How a text is cut into symbols.
struct SymbolOptions {
    bool words = false;
    bool lowercase = false;
    std::string drop;
};

/// The symbols of a text: its characters (UTF-8 code points; a run of blanks is one, none at the
/// ends), or its words.
///
/// Throws  Error 65 for a text that is not UTF-8, naming `from`
std::vector<std::string> symbols_of(std::string const& text, SymbolOptions const& options,
                                    std::string const& from);

} // namespace lockstep::import

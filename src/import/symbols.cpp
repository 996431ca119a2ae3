#include "symbols.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "lockstep/base/error.hpp"

#include <locale.h>
#include <wctype.h>

namespace lockstep::import {

namespace {

char32_t lower(char32_t point) {
    // The same on every host, whatever the user's locale is.
    static locale_t const locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return locale == nullptr
               ? point
               : static_cast<char32_t>(towlower_l(static_cast<wint_t>(point), locale));
}

} // namespace

std::vector<std::string> symbols_of(std::string const& text, SymbolOptions const& options,
                                    std::string const& from) {
    auto const dropped = decoded(options.drop, "--drop");
    std::string kept;
    std::vector<std::string> characters;
    for (auto point : decoded(text, from)) {
        if (dropped.find(point) != std::u32string::npos) {
            continue;
        }
        bool const blank = point == U' ' || point == U'\t' || point == U'\n' || point == U'\r';
        point = blank ? U' ' : options.lowercase ? lower(point) : point;
        if (blank && (kept.empty() || kept.back() == ' ')) {
            continue;
        }
        characters.push_back(encoded(point));
        kept += characters.back();
    }
    if (!characters.empty() && characters.back() == " ") {
        characters.pop_back();
    }
    if (!options.words || characters.empty()) {
        return characters;
    }
    return split(trimmed(kept), ' ');
}

} // namespace lockstep::import

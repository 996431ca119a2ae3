#pragma once

#include <string_view>

namespace lockstep::serve {

/// A file of the page; it is a part of the program.
struct Asset {
    std::string_view path;
    char const* type;
    std::string_view text;
};

/// The file at this path of the address; null where there is none.
Asset const* asset_at(std::string_view path);

} // namespace lockstep::serve

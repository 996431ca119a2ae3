#pragma once

#include "config/named.hpp"

#include <string>
#include <vector>

namespace lockstep::config {

/// A key of the deck, as help and completion show it.
struct ListedKey {
    std::string name;                   ///< "run.mode"
    std::string otherwise;              ///< its default
    std::vector<std::string> choices{}; ///< of a text; any when empty
    Named names = Named::nothing;
    std::string meaning{};
    bool is_flag = false; ///< true or false
    bool is_open = false; ///< "model.*": further keys belong to what the section names
};

/// All of them, in the order of their sections.
std::vector<ListedKey> listed_keys();

} // namespace lockstep::config

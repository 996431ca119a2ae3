#pragma once

#include "search/study.hpp"

#include <map>
#include <string>

namespace lockstep::test {

using SpaceKeys = std::map<std::string, std::string>;

inline config::DeckSource space_source(SpaceKeys const& keys) {
    config::DeckSource source;
    for (auto const& [key, value] : keys) {
        source.set(key, {value, "space.ini:1"});
    }
    return source;
}

inline search::Space space_of(SpaceKeys const& keys) {
    auto const source = space_source(keys);
    auto const settings = search::settings_of(source);
    return {source, settings.constraints, settings.constraints_origin};
}

} // namespace lockstep::test

#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>

#include "damage.hpp"

namespace lockstep::checkpoint {

/// Runs `work`, which handles JSON; JSON that does not parse is reported as damage of the file.
template <class Work>
auto parsing(std::filesystem::path const& path, Work const& work) {
    try {
        return work();
    } catch (nlohmann::json::exception const& failure) {
        throw not_ours(path, failure.what());
    }
}

} // namespace lockstep::checkpoint

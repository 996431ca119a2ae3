#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

struct GenerateOptions {
    std::string prompt{};
    std::int64_t tokens = 200;
    double temperature = 1; ///< 0: always the most probable token
    std::int64_t top_k = 0; ///< of the most probable tokens one is drawn; 0: of all
    std::int64_t seed = 0;
};

} // namespace lockstep::train

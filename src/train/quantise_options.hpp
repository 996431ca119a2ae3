#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

struct QuantiseOptions {
    std::int64_t samples = 1024; ///< of data.train, that layers are calibrated by
    std::string method = "mse";  ///< minmax, percentile, mse
    bool overwrite = false;
};

} // namespace lockstep::train

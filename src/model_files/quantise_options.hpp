#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

struct QuantiseOptions {
    std::int64_t samples = 1024; ///< samples of data.train for calibration
    std::string method = "mse";  ///< minmax, percentile, mse
    bool overwrite = false;
};

} // namespace lockstep::train

#pragma once

#include "program/archive.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::program {

/// What lockstep_export.save recorded about a loss that was exported with the model: forward takes
/// inputs and targets, and returns sums over the batch.
struct LossMetadata {
    struct Ratio {
        std::string name;
        std::size_t dividend = 0; ///< which sum
        std::size_t divisor = 0;
        bool more_is_better = true;
    };

    std::vector<std::string> sums; ///< names of what forward returns, in its order
    std::size_t loss = 0;          ///< which of them is minimised
    std::size_t weight = 0;        ///< which of them it is divided by
    std::vector<Ratio> metrics{};
};

/// The metadata; nothing where the file was saved without a loss.
///
/// Throws  Error 65 for metadata of another form
std::optional<LossMetadata> read_loss_metadata(Archive const& archive);

} // namespace lockstep::program

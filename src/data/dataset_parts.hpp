#pragma once

#include "comm/shared_block.hpp"
#include "lockstep/data/dataset.hpp"

#include <optional>
#include <string>
#include <vector>

#include "field.hpp"
#include "source.hpp"

namespace lockstep::data {

/// What was opened; of the caches in it, readers on several threads change the contents only.
struct Dataset::Parts {
    Source source;
    std::vector<Field> inputs;
    std::vector<Field> targets;
    std::optional<comm::SharedBlock> memory;                ///< of what is kept there
    std::optional<std::vector<std::string>> declared_names; ///< of the first file
    std::string weights;                                    ///< name of their dataset
};

} // namespace lockstep::data

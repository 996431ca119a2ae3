#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/import.hpp"

namespace lockstep::test {

/// Imports in this process alone, without a word, over what is there.
inline data::ImportReport import_to(std::filesystem::path const& out,
                                    data::ImportSource const& source,
                                    data::ImportOptions options = {}) {
    options.out = out;
    options.overwrite = true;
    return data::import_set(comm::Communicator::self(), source, options,
                            [](std::string const&, std::int64_t, std::int64_t) {});
}

} // namespace lockstep::test

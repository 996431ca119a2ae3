#pragma once

#include "import/import.hpp"
#include "lockstep/comm/communicator.hpp"

namespace lockstep::test {

/// Imports in this process alone, without a word, over what is there.
inline import::ImportReport import_to(std::filesystem::path const& out,
                                      import::ImportSource const& source,
                                      import::ImportOptions options = {}) {
    options.out = out;
    options.overwrite = true;
    return import::import_set(comm::Communicator::self(), source, options,
                              [](std::string const&, std::int64_t, std::int64_t) {});
}

} // namespace lockstep::test

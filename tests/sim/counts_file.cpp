#include "counts_file.hpp"

#include "mapped_file.hpp"

namespace lockstep::sim {

CountsFile::CountsFile(std::string const& directory)
    : counts_(directory.empty()
                  ? std::make_shared<Counts>()
                  : std::static_pointer_cast<Counts>(mapped_file(directory, sizeof(Counts)))) {}

} // namespace lockstep::sim

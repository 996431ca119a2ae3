#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// A rank that has left its mark.
struct ArrivedRank {
    int rank = 0;
    std::string host;
    int process = 0;
};

/// Returns the ranks from 0 to `ranks` that have left their marks in a directory of arrivals.
std::vector<ArrivedRank> arrived_ranks(std::filesystem::path const& directory, int ranks);

} // namespace lockstep

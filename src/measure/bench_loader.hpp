#pragma once

#include "lockstep/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace lockstep::measure {

/// A data set that `lockstep bench loader` generates, and a lower bound for reading it.
struct GeneratedSet {
    std::string name;
    std::int64_t samples = 0;
    std::int64_t batch = 0;
    std::string shuffle;
    std::string files; ///< below the path that is written; empty: that path is the file
    std::function<void(std::filesystem::path const&)> write;
    /// Does only the unavoidable work, for all samples, on this many threads; may be empty.
    std::function<void(std::filesystem::path const&, data::DatasetOptions const&, int threads)>
        baseline;
};

/// Throws  Error 64 for an unknown name
GeneratedSet generated_set(std::string const& name);

} // namespace lockstep::measure

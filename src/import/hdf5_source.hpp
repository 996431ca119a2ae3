#pragma once

#include "import/source.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::import {

struct Hdf5Import {
    std::filesystem::path source{};
    std::vector<std::string> inputs{"inputs"};
    std::vector<std::string> targets{"targets"};
    std::string weights{};              ///< dataset of the samples' weights; empty: none
    std::vector<std::string> classes{}; ///< empty: the source's, or "0", "1", …
    std::string type{};                 ///< of the inputs; empty: as they are
    /// Moments of the first input as it is stored, those of u8 in units of value / 255: for each
    /// channel, or one for all; empty: the source's.
    std::vector<double> mean{};
    std::vector<double> std{};
    std::string split_by{}; ///< dataset of a whole number per sample: what a split keeps together
};

/// Any HDF5 file with one entry per sample, or rows of each sample with NAME_offsets, whatever its
/// layout and filters. The only input and the only target become `inputs` and `targets`; several
/// keep their names.
///
/// Throws  Error 66 for a missing source, 65 for a damaged one, 64 for columns or datasets that it
///         does not have
std::unique_ptr<ImportSource> hdf5_source(Hdf5Import const& options);

} // namespace lockstep::import

#pragma once

#include "base/clean_up.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/dataset.hpp"
#include "measure/bench_loader.hpp"
#include "measure/measurement.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::measure {

/// What is measured of a loader, and how it reads.
struct LoaderTrial {
    std::optional<GeneratedSet> generated{}; ///< none: files of the user, or no data at all
    bool order = false;                      ///< only the order is measured
    data::DatasetOptions files{};
    std::filesystem::path directory{}; ///< where the generated set is written
    std::string shuffle = "full";
    std::int64_t batch = 32;
    int workers = 2;
    int prefetch = 4;
    std::int64_t repeats = 5;
};

/// The variants that can be measured.
std::vector<std::string> variants_of(LoaderTrial const& trial);

/// The generated file, removed with this object.
class TrialFile {
  public:
    /// Collective  over `world`; `trial.files` becomes what was written
    TrialFile(comm::Communicator const& world, LoaderTrial& trial);
    TrialFile(TrialFile const&) = delete;
    TrialFile& operator=(TrialFile const&) = delete;
    ~TrialFile();

  private:
    bool owner_;
    std::filesystem::path path_;
    std::unique_ptr<CleanUp> removal_;
};

/// Collective  over `world`
Measurement measure_loader(comm::Communicator const& world, LoaderTrial const& trial,
                           std::string const& variant);

} // namespace lockstep::measure

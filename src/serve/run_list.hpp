#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "run.hpp"

namespace lockstep::serve {

/// The runs that are shown, and the searches. Requests name them by their index in this list, never
/// by a path; the index of each stays the same.
class RunList {
  public:
    /// `roots`: directories of runs, or directories that hold some, up to three levels deep.
    /// `carbon_intensity`: grams of CO2 per kWh of electricity, where it is known.
    ///
    /// Throws  Error 66 for a root that is not a directory
    explicit RunList(std::vector<std::filesystem::path> roots,
                     std::optional<double> carbon_intensity = {});

    /// Adds the runs and searches that are new since then.
    void look_again();
    std::size_t size() const noexcept { return runs_.size(); }
    Run& operator[](std::size_t place) { return *runs_[place]; }
    Run const& operator[](std::size_t place) const { return *runs_[place]; }
    /// Directories of searches.
    std::vector<std::filesystem::path> const& searches() const noexcept { return searches_; }
    std::optional<double> carbon_intensity() const noexcept { return carbon_intensity_; }

  private:
    void look_into(std::filesystem::path const& directory, int levels);
    void add(std::filesystem::path const& directory);

    std::vector<std::filesystem::path> roots_;
    std::vector<std::unique_ptr<Run>> runs_;
    std::vector<std::filesystem::path> searches_;
    std::optional<double> carbon_intensity_;
};

} // namespace lockstep::serve

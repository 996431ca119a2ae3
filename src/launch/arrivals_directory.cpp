#include "arrivals_directory.hpp"

#include "base/arrival.hpp"

namespace lockstep::launch {

ArrivalsDirectory::ArrivalsDirectory(std::filesystem::path const& run)
    : path_(std::filesystem::absolute(run) / arrivals_name) {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
    std::filesystem::create_directories(path_, failure);
}

/// A run that has not begun leaves no directory behind.
ArrivalsDirectory::~ArrivalsDirectory() {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
    std::filesystem::remove(path_.parent_path(), failure);
}

} // namespace lockstep::launch

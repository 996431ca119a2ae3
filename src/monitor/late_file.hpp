#pragma once

#include "base/file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::monitor {

/// When a run's records are opened: by now, or as soon as this process has their directory, which
/// may be absent while a launch continues the run.
enum class Opening { now, late };

/// As LOCKSTEP_CONTINUES, by which a launch names the run that it continues, says of a run's file;
/// a link, such as that of the standard output, is none.
Opening opening_of_record(std::filesystem::path const& file);

/// A file of a run's directory to which lines are appended. What comes before it is opened is kept
/// in memory.
class LateFile {
  public:
    /// Throws  Error 73 when it is opened now and cannot be made
    LateFile(std::filesystem::path path, Opening opening);

    /// Throws  Error 73 or 74 when the file cannot be written; a text that waited waits on
    void append_text(std::string const& text);

  private:
    void open();
    void keep(std::string const& text);

    std::filesystem::path path_;
    std::optional<File> file_;
    std::string kept_;
    std::int64_t lost_ = 0; ///< lines that there was no memory for
};

} // namespace lockstep::monitor

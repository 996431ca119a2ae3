#pragma once

#include "base/file.hpp"

#include <filesystem>
#include <string>

namespace lockstep::report {

/// A file of records in TFRecord's format: length, masked CRC-32C of the length, bytes, masked
/// CRC-32C of the bytes, all little-endian. Each record is one write, so that a concurrent reader
/// sees whole ones, and only the last one can be incomplete after a kill.
class EventFile {
  public:
    /// A new file in `directory`, which is made; names sort by time.
    ///
    /// Throws  Error 73 when it cannot be made
    explicit EventFile(std::filesystem::path const& directory);

    /// Throws  Error 74 when it cannot be written
    void append(std::string const& record) const;

  private:
    File file_;
};

} // namespace lockstep::report

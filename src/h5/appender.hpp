#pragma once

#include "h5/file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep::h5 {

/// Fills a dataset from its first row on. The dataset stays open meanwhile, so that a chunk which
/// is not full yet waits in memory and is deflated once; a failed write is reported at `close` at
/// the latest. The file must outlive it.
class Appender {
  public:
    /// Throws  Error 70 for a dataset without rows
    Appender(File const& file, std::string const& path, Type type);

    /// Shape   whole rows, in the dataset's `type`, no more than are left
    /// Throws  Error 70 for anything else, 74 when the disk fails
    void append(std::span<std::byte const> rows);

    /// Throws  Error 70 when rows are missing, 74 when the disk fails
    void close();

  private:
    File const& file_;
    std::string name_;
    Type type_;
    Handle dataset_;
    Handle space_;
    Shape shape_;
    std::uint64_t row_bytes_ = 0;
    std::uint64_t written_ = 0; ///< rows
};

} // namespace lockstep::h5

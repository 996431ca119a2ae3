#pragma once

#include "h5/file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct gzFile_s;

namespace lockstep::import {

/// An IDX file of unsigned bytes, plain or gzipped: a big-endian header with the extents, then the
/// values, sample after sample (http://yann.lecun.com/exdb/mnist, "the IDX file format").
class IdxFile {
  public:
    /// Reads the header.
    ///
    /// Throws  Error 66 when there is none; 65 when it is no IDX file, or cannot be as long as its
    ///         header says
    explicit IdxFile(std::filesystem::path path);

    h5::Shape const& shape() const noexcept { return shape_; }

    /// Reads the next values. Throws Error 65 when the file ends earlier
    void read(std::span<std::byte> into);
    /// Makes sure that nothing follows and, of a gzipped file, that its checksum is right.
    void require_end();

    [[noreturn]] void refuse(
        std::string const& why,
        std::string const& next = "Download the file again") const; ///< Error 65, naming the file

  private:
    std::uint32_t number();

    std::filesystem::path path_;
    std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file_;
    h5::Shape shape_;
};

} // namespace lockstep::import

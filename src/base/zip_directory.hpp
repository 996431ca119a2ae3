#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

/// Where a ZIP archive's list of contents lies, in bytes.
struct ZipDirectory {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
};

constexpr std::uint64_t zip_end_bytes = 22 + 0xffff; ///< its end record, and the longest comment

/// The directory of an archive of `size` bytes that ends with `tail`, which has `zip_end_bytes` or
/// all of them. Without a value where it does not lie before its end record: an archive that is cut
/// off may end with another one that it holds, such as the inputs in a program of PyTorch.
///
/// Source  PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.14 to 4.3.16
std::optional<ZipDirectory> zip_directory(std::string_view tail, std::uint64_t size);

} // namespace lockstep

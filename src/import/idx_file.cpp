#include "idx_file.hpp"

#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "source_file.hpp"

namespace lockstep::import {

namespace {

constexpr std::uint32_t max_dimensions = 8;
// Deflate makes at most 1032 bytes of one (https://zlib.net/zlib_tech.html).
constexpr std::uint64_t max_expansion = 1032;

} // namespace

IdxFile::IdxFile(std::filesystem::path path)
    : path_((require_file(path), std::move(path))), file_(gzopen(path_.c_str(), "rb"), gzclose) {
    if (!file_) {
        throw Error(ExitCode::no_input,
                    {concat("cannot open ", path_.string()), "zlib could not open this file",
                     "Check the file's permissions"});
    }
    if (std::filesystem::file_size(path_) == 0) {
        refuse("it is empty");
    }
    auto const magic = number();
    auto const dimensions = magic & 0xff;
    auto const type = static_cast<std::uint8_t>(magic >> 8U);
    if (magic >> 16U != 0) { // two zero bytes, then the type
        auto const kind = kind_of_file(path_);
        refuse(concat("it does not begin like an IDX file",
                      kind.name.empty() ? "" : concat(": it is ", kind.name)),
               kind.name.empty() ? "Download the file again" : "Name another file");
    }
    if (type != 0x08) {
        constexpr std::array<std::pair<std::uint8_t, char const*>, 5> others{
            {{0x09, "i8"}, {0x0b, "i16"}, {0x0c, "i32"}, {0x0d, "f32"}, {0x0e, "f64"}}};
        auto const* const other =
            std::ranges::find(others, type, [](auto const& each) { return each.first; });
        refuse(other == others.end()
                   ? concat("its header states the unknown type ", static_cast<int>(type))
                   : concat("it holds values of type ", other->second, ", not unsigned bytes"),
               other == others.end() ? "Download the file again"
                                     : "Convert the values to unsigned bytes, or store them as a "
                                       "dataset of an HDF5 file and import that with lockstep data "
                                       "import hdf5");
    }
    if (dimensions == 0 || dimensions > max_dimensions) {
        refuse(concat("its header states ", dimensions, " dimensions, not 1 to ", max_dimensions));
    }
    std::uint64_t values = 1;
    auto const max = max_expansion * std::filesystem::file_size(path_);
    for (std::uint32_t i = 0; i < dimensions; ++i) {
        auto const extent = shape_.emplace_back(number());
        if (extent == 0) {
            refuse("its header says that it holds nothing");
        }
        if (values > max / extent) {
            refuse("its header states more data than a file of its size can hold");
        }
        values *= extent;
    }
}

void IdxFile::read(std::span<std::byte> into) {
    while (!into.empty()) {
        auto const max = static_cast<unsigned>(std::min<std::size_t>(into.size(), 1U << 30));
        int const got = gzread(file_.get(), into.data(), max);
        if (got < 0) {
            refuse("its compressed data is damaged or cut short");
        }
        if (got == 0) {
            refuse(concat("it is ", into.size(), " bytes shorter than its header says"));
        }
        into = into.subspan(static_cast<std::size_t>(got));
    }
}

void IdxFile::require_end() {
    std::byte more{};
    int const got = gzread(file_.get(), &more, 1); // reads a gzipped file's checksum as well
    if (got > 0) {
        refuse("it holds more than its header says");
    }
    // A file that was cut inside its last bytes says so only when it is closed.
    if (got < 0 || gzclose_r(file_.release()) != Z_OK) {
        refuse("its checksum is wrong, or its end is missing");
    }
}

void IdxFile::refuse(std::string const& why, std::string const& next) const {
    throw Error(ExitCode::data, {path_.string(), why, next});
}

std::uint32_t IdxFile::number() {
    std::array<std::byte, 4> bytes{};
    read(bytes);
    std::uint32_t value = 0;
    for (auto const byte : bytes) {
        value = (value << 8) | std::to_integer<std::uint32_t>(byte);
    }
    return value;
}

} // namespace lockstep::import

#include "report/png.hpp"

#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "lockstep/base/error.hpp"

#include <zlib.h>

#include <array>
#include <string_view>

namespace lockstep::report {

namespace {

std::string big_endian(std::uint64_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes.push_back(static_cast<char>((number >> shift) & 0xff));
    }
    return bytes;
}

unsigned char const* as_bytes(std::string const& text) {
    return reinterpret_cast<unsigned char const*>(text.data());
}

/// Length, name, contents, and the CRC of the latter two.
std::string chunk(std::string_view name, std::string const& contents) {
    auto const text = std::string(name) + contents;
    auto const sum = ::crc32(0, as_bytes(text), static_cast<uInt>(text.size()));
    return big_endian(contents.size()) + text + big_endian(sum);
}

std::string deflated(std::string const& text) {
    auto length = ::compressBound(text.size());
    std::string packed(length, '\0');
    if (::compress(reinterpret_cast<unsigned char*>(packed.data()), &length, as_bytes(text),
                   text.size()) != Z_OK) {
        throw Error(ExitCode::software,
                    {"a picture of a sample could not be made", "zlib failed to compress it",
                     "This is a bug; please report it"});
    }
    packed.resize(length);
    return packed;
}

} // namespace

std::string png_of(train::Picture const& picture) {
    constexpr char bits = 8;
    char const colour = picture.channels == 3 ? 2 : 0;
    auto header = big_endian(static_cast<std::uint64_t>(picture.width)) +
                  big_endian(static_cast<std::uint64_t>(picture.height));
    for (char const byte : {bits, colour, '\0', '\0', '\0'}) { // deflate, no interlace
        header.push_back(byte);
    }
    auto const row = static_cast<std::size_t>(picture.width * picture.channels);
    std::string rows;
    for (std::size_t begin = 0; begin < picture.pixels.size(); begin += row) {
        rows.push_back('\0'); // no filter
        rows.append(reinterpret_cast<char const*>(picture.pixels.data()) + begin, row);
    }
    return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", deflated(rows)) +
           chunk("IEND", "");
}

void write_png(std::filesystem::path const& path, train::Picture const& picture) {
    PartialFile partial(partial_path(path));
    File::create_new(partial.path()).append_text(png_of(picture));
    partial.rename_unsynced(path);
}

} // namespace lockstep::report

#pragma once

#include "lockstep/h5/file.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

// The form of our data set files; see docs/formats.md.
constexpr char const* format_name = "lockstep-dataset";
constexpr std::int64_t format_version = 1;
constexpr std::uint64_t checksum_block = std::uint64_t{1} << 20; ///< bytes under one checksum
constexpr std::int64_t most_classes = 100000;

struct FieldNames {
    std::string inputs;
    std::string targets;
};

/// What a file holds, after it was checked: the inputs' bytes stay in the file.
struct OpenedSamples {
    h5::Shape sample_shape;
    h5::Type input_type = h5::Type::u8;
    std::uint64_t inputs_at = 0;
    std::vector<std::int64_t> targets;
    std::vector<std::string> class_names; ///< empty where the file names none
    std::vector<double> mean;             ///< empty: none; else one, or one a channel
    std::vector<double> std;
    std::uint64_t fingerprint = 0;
};

/// Opens a data set file, ours or another's, and checks that it can be read by position.
///
/// Throws  Error 66 or 65
OpenedSamples open_samples(std::filesystem::path const& path, FieldNames const& names);

/// Reads targets of any whole-number type.
std::vector<std::int64_t> read_targets(h5::File const& file, std::string const& name);

/// Hashes of the blocks of `bytes`.
std::vector<std::uint64_t> block_checksums(std::span<std::byte const> bytes);

} // namespace lockstep::data

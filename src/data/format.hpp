#pragma once

#include "base/file.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/facts.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::data {

// The form of our data set files; see docs/formats.md.
constexpr char const* format_name = "lockstep-dataset";
constexpr std::int64_t format_version = 1;
constexpr std::int64_t max_classes = 100000;
constexpr std::int64_t no_class = 255; ///< what masks often have where there is no class
/// How many values a sample, or a row of one, may have, since it is read as a whole: in float32,
/// they are 1 GiB.
constexpr std::uint64_t max_sample_values = std::uint64_t{1} << 28;

/// What a dataset's first extent counts: samples, or nothing, since the whole dataset is one.
enum class Entries { samples, one };

/// The facts of a dataset, which must have at least one entry, of plain numbers.
///
/// Throws  Error 65 where it is missing or of another form
h5::DatasetInfo readable_dataset(h5::File const& file, std::string const& name,
                                 Entries entries = Entries::samples);

/// Mean and standard deviation; empty where the file gives none.
using Moments = std::pair<std::vector<double>, std::vector<double>>;
Moments read_moments(h5::File const& file, h5::Shape const& sample_shape);

/// Throws  Error 65 where inputs of a type cannot be scaled by the mean and std that a file gives
void require_scales(std::filesystem::path const& path, h5::Type type,
                    std::vector<double> const& mean, std::vector<double> const& std);

/// A warning of a mean that lies outside of u8 inputs, which are divided by 255 first; `whose` says
/// where it is given. Empty: nothing to tell.
std::string undivided_text(h5::Type type, std::vector<double> const& mean,
                           std::string const& whose);

/// In a file of tokens: how many bytes of text each stands for, and which token ends a document.
constexpr char const* token_bytes_name = "token_bytes";
constexpr char const* end_of_text_name = "end_of_text";
/// For each token, whether it is learnt (1) or is only context (0).
constexpr char const* learnt_name = "learnt";
/// The error for a value of a mask that is neither; `which` names the value and its place.
Error wrong_mark(std::string which);
/// The tokenizer.json that the tokens were made with.
constexpr char const* tokenizer_name = "tokenizer";

/// What each sample, or each document, was made from, as `h5::TextRows`.
constexpr char const* sources_name = "sources";

/// The names of the columns of a table or a series, and the rate of recordings in Hz.
constexpr char const* columns_name = "columns";
constexpr char const* sample_rate_name = "sample_rate";

/// What the file says of its samples besides their fields; of tokens where asked for.
///
/// Throws  Error 65 as read_moments, or where there is not one number for each token
Facts read_facts(h5::File const& file, h5::Shape const& sample_shape, bool of_tokens);

/// Attributes of a dataset by which netCDF's readers scale or mask values: "NAME = VALUE". Those
/// without an effect are left out.
std::vector<std::string> unapplied_attributes(h5::File const& file, std::string const& name);
/// A warning that parts of a dataset were never written.
std::string unwritten_text(std::string const& name, std::filesystem::path const& path);

/// Bytes [first, first + count) of a file.
struct ByteRange {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

/// Where a contiguous dataset of one of our types lies.
///
/// Throws  Error 65 when that is not within the file
ByteRange bytes_in_file(h5::File const& file, h5::DatasetInfo const& info,
                        std::uint64_t file_bytes);

/// Reads targets of any whole-number type, one for each sample; u64 above 2^63 - 1 are negative.
std::vector<std::int64_t> read_targets(h5::File const& file, std::string const& name,
                                       std::uint64_t samples);

/// Names for the classes of `targets`, which come from `path`: those given, or "0", "1", …
///
/// Throws  Error 65 for a label that is negative or absurdly large, printed as a number of `type`;
///         `at_fault` when a label has no name
std::vector<std::string> complete_names(std::vector<std::string> given,
                                        std::span<std::int64_t const> targets,
                                        std::filesystem::path const& path,
                                        ExitCode at_fault = ExitCode::usage,
                                        h5::Type type = h5::Type::i64);

/// A whole number as its type has it: u64 above 2^63 - 1 are kept as negative ones.
std::string whole_text(h5::Type type, std::int64_t number);

} // namespace lockstep::data

#pragma once

#include "lockstep/base/file.hpp"
#include "lockstep/h5/file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

/// The form of a data set file that is about to be written.
struct SetForm {
    std::int64_t samples = 0;
    h5::Shape sample_shape;
    h5::Type input_type = h5::Type::u8;
    std::vector<std::string> class_names;
    std::vector<double> mean;
    std::vector<double> std;
};

/// Writes a data set file under a temporary name, sample after sample, and gives it its name when
/// it is complete and on the disk.
class SetWriter {
  public:
    /// Throws  Error 73 when the file cannot be made, 74 when the disk has no room for all of it
    SetWriter(std::filesystem::path path, SetForm form);
    SetWriter(SetWriter const&) = delete;
    SetWriter& operator=(SetWriter const&) = delete;
    ~SetWriter(); ///< removes the temporary file of a set that was not committed

    void append_inputs(std::span<std::byte const> samples);    ///< whole samples
    void write_targets(std::span<std::int64_t const> targets); ///< all of them

    /// Writes the checksums, makes everything durable, renames. Returns the file's size.
    std::uint64_t commit();

  private:
    void lay_out();

    std::filesystem::path path_;
    std::filesystem::path partial_;
    SetForm form_;
    std::optional<File> file_;
    std::uint64_t input_bytes_ = 0;
    std::uint64_t inputs_at_ = 0;
    std::uint64_t targets_at_ = 0;
    std::uint64_t input_sums_at_ = 0;
    std::uint64_t target_sums_at_ = 0;
    std::uint64_t rest_sum_at_ = 0;
    std::uint64_t written_ = 0;         ///< bytes of inputs
    std::vector<std::byte> open_block_; ///< bytes since the last whole checksum block
    std::vector<std::uint64_t> input_sums_;
    bool committed_ = false;
};

} // namespace lockstep::data

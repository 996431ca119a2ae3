#pragma once

#include "lockstep/base/file.hpp"
#include "lockstep/h5/file.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

struct DatasetOptions {
    std::string files; ///< a file, a list with commas, or a glob
    std::string inputs = "inputs";
    std::string targets = "targets";
};

/// The files that a text names, in order; a glob's are sorted.
///
/// Throws  Error 66 when a file is missing or a glob matches none
std::vector<std::filesystem::path> expand_files(std::string const& files);

/// One logical data set over one or several HDF5 files. HDF5 opens them and says where the bytes
/// lie; these are then read by position, from any thread. Immutable once open.
class Dataset {
  public:
    /// Opens every file and reads all targets.
    ///
    /// Throws  Error 66 for a missing file; 65 for one that is damaged or cut short, whose shape
    ///         or type is not the others', or that holds a label out of range
    explicit Dataset(DatasetOptions const& options);

    std::int64_t samples() const noexcept { return static_cast<std::int64_t>(targets_.size()); }
    h5::Shape const& sample_shape() const noexcept { return sample_shape_; }
    h5::Type input_type() const noexcept { return input_type_; }
    std::int64_t classes() const noexcept { return static_cast<std::int64_t>(names_.size()); }
    std::vector<std::string> const& class_names() const noexcept { return names_; }
    std::vector<std::int64_t> class_counts() const;

    /// A hash of what the files hold, as far as it can be known without reading all of it.
    std::uint64_t fingerprint() const noexcept { return fingerprint_; }

    /// Samples as float32, u8 scaled by 1/255, minus mean, over std of the file.
    ///
    /// Shape   into [indices, sample…]
    /// Throws  Error 74 or 65 when the file cannot be read
    void read_inputs(std::span<std::int64_t const> indices, std::span<float> into) const;
    void read_targets(std::span<std::int64_t const> indices, std::span<std::int64_t> into) const;

  private:
    struct Shard {
        File file;
        std::uint64_t inputs_at = 0; ///< byte of the first sample
        std::int64_t first = 0;      ///< number of its first sample in the data set
    };

    void open_shard(std::filesystem::path const& path, DatasetOptions const& options);
    void check_labels(std::filesystem::path const& path, std::int64_t first) const;
    void make_tables();
    void convert(std::span<std::byte const> raw, std::span<float> into) const;

    std::vector<Shard> shards_;
    h5::Shape sample_shape_;
    h5::Type input_type_ = h5::Type::u8;
    std::vector<double> mean_;
    std::vector<double> std_;
    std::vector<std::array<float, 256>> tables_; ///< u8 → float, by channel
    std::vector<std::string> declared_names_;    ///< as the files give them; empty: not at all
    std::vector<std::string> names_;
    std::vector<std::int64_t> targets_;
    std::uint64_t fingerprint_ = 0;
};

} // namespace lockstep::data

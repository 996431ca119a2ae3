#pragma once

#include "base/file.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/snapshot.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// A whole tensor under its own name, such as "model/conv1/weight".
struct NamedArray {
    std::string path;
    h5::Type type = h5::Type::f32;
    h5::Shape shape; ///< none: a scalar
    std::span<std::byte const> bytes;
};

/// Where datasets of a page or more begin.
enum class Alignment {
    pages, ///< to be read fast
    none   ///< to be short
};

/// Writes a model as plain datasets, which tools can also copy out of the file (unlike the virtual
/// ones of a checkpoint). It has a record and checksums like a checkpoint, and is written under a
/// temporary name, synced and renamed. For one process.
///
/// Throws  Error 70 when an array's bytes do not fit its shape, 73 when the file cannot be created,
///         74 for a full disk
void write_model(std::filesystem::path const& path, std::vector<NamedArray> const& arrays,
                 Record const& record, Alignment alignment = Alignment::pages);

/// Whether the file is one that `write_model` wrote, according to its own attributes.
///
/// Throws  Error 66 when there is no such file, 65 when it is not HDF5
bool is_model_file(std::filesystem::path const& path);

/// A model file, read by this process alone. HDF5 is used by the constructor only.
class ModelFile {
  public:
    struct ArrayInfo {
        std::string path;
        h5::Type type = h5::Type::f32;
        h5::Shape shape;
    };

    /// Throws  Error 66 when there is no such file, 65 when it is not a model file or is damaged
    explicit ModelFile(VerifiedFile const& file);

    Record const& record() const noexcept { return record_; }
    std::vector<ArrayInfo> const& entries() const noexcept { return entries_; } ///< by path

    /// The entry of that path. Throws Error 65 when there is none.
    ArrayInfo const& entry(std::string const& path) const;

    /// Reads a whole array.
    ///
    /// Shape   `into` is exactly as long as the array
    /// Throws  Error 65 when there is no such array or its size is another
    void read(std::string const& path, std::span<std::byte> into) const;

  private:
    File file_;
    Record record_;
    std::vector<ArrayInfo> entries_;
    std::vector<std::uint64_t> offsets_;        ///< in the file, of each entry
    std::map<std::string, std::size_t> places_; ///< of entries, by path
};

} // namespace lockstep::checkpoint

#pragma once

#include "checkpoint/record.hpp"
#include "checkpoint/snapshot.hpp"
#include "h5/element_type.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// A model's tensors by name, whatever file they lie in. Read by this process alone.
class Weights {
  public:
    struct TensorInfo {
        std::string name;              ///< "features.conv1.weight"
        h5::Type type = h5::Type::f32; ///< f32 for all that are real values, i64 for whole numbers
        h5::Shape shape;               ///< a single value has [1] in our files, [] in others
        bool is_buffer = false;        ///< no optimizer trains it, as far as the file says

        std::uint64_t bytes() const { return h5::elements(shape) * h5::size_of(type); }
    };

    virtual ~Weights() = default;

    std::filesystem::path const& path() const noexcept { return path_; }
    std::vector<TensorInfo> const& entries() const noexcept { return entries_; }
    /// Whether the file has layers in int8, which only an evaluation uses: they are not among the
    /// entries.
    bool quantised() const noexcept { return quantised_; }
    Record const& record() const noexcept {
        return record_;
    } ///< of the run; of others' files: none

    /// The entry of that name; null when there is none.
    TensorInfo const* find(std::string const& name) const;

    /// Reads a whole tensor.
    ///
    /// Shape   `into` is exactly as long as the entry
    /// Throws  Error 65 when the file is damaged, 70 when `into` has another size
    void read(TensorInfo const& entry, std::span<std::byte> into) const;

  protected:
    explicit Weights(std::filesystem::path path) : path_(std::move(path)) {}

    std::filesystem::path path_;
    std::vector<TensorInfo> entries_;
    Record record_;
    bool quantised_ = false;

  private:
    virtual void read_entry(std::size_t index, std::span<std::byte> into) const = 0;

    mutable std::map<std::string, std::size_t> by_name_; ///< of entries, once one was looked for
};

/// The array of a checkpoint that holds the buffers of real values, such as running statistics.
inline constexpr char const* real_buffers = "state/buffers_f32";

/// The tensors of a checkpoint, of a best.h5 or of a safetensors file. A checkpoint's averaged
/// weights, where it has some, are its weights: they are what a run measures. Its adapters, where
/// it has some, are merged into the weights.
///
/// Throws  Error 66 when there is no such file, 65 when it is none of these or is damaged
std::unique_ptr<Weights> open_weights(VerifiedFile const& file);

/// Writes them as plain HDF5 datasets, model/NAME, like best.h5.
///
/// Throws  Error 73 when the file cannot be created, 74 for a full disk
void write_model(std::filesystem::path const& path, Weights const& weights);

} // namespace lockstep::checkpoint

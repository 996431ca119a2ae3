#pragma once

#include "data/plan.hpp"
#include "lockstep/data/batch.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "column.hpp"
#include "file_pool.hpp"
#include "normaliser.hpp"
#include "source.hpp"

namespace lockstep::data {

/// Samples that are cut from all entries of a dataset, one after the other: `length` entries each,
/// shifted from the sample's first entry by an offset. With length 0, samples are as stored.
struct Window {
    std::int64_t length = 0;
    std::int64_t shift = 0;
    bool of_tokens = true; ///< else of numbers that mark tokens
};

/// A field of all samples, over all files of the data set.
class Field {
  public:
    Field(std::string name, bool is_input, Window window = {})
        : is_input_(is_input), window_(window) {
        info_.name = std::move(name);
    }

    FieldInfo const& info() const noexcept { return info_; }
    /// Attributes of its dataset in the first file by which other programs would change its values,
    /// "NAME = VALUE".
    std::vector<std::string> const& unapplied() const noexcept { return unapplied_; }
    /// Samples that are best read together: those of a chunk.
    std::int64_t samples_together() const;

    /// Adds the field of the next file; the first file decides the type and shape. Returns the
    /// number of samples there.
    ///
    /// Throws  Error 65 where the file has no such field, or one that differs from the other files'
    std::int64_t add(h5::File const& file, Source& source);
    /// The same field of no file yet, its type and shape known.
    Field without_files() const;
    /// Packs what `add` has found in a file; `first` is the first that is packed.
    void pack(std::size_t file, std::size_t first, Source const& source, Packer& packer) const;
    /// Adds the field of the next file, which another rank has packed; the memory of `packed` must
    /// outlive the field.
    ///
    /// Throws  Error 65 where what only HDF5 can read is too large to be kept in memory
    void add(Unpacker& packed, Source& source);
    /// Decides the type that is handed out, once all files were added. Whole-number targets stay
    /// whole numbers. Of inputs, only 64-bit integers, and those with a window or a vocabulary, do;
    /// the others become float32.
    void prepare(std::vector<double> const& mean, std::vector<double> const& std, bool last);

    /// Its datasets in a file.
    std::vector<Column const*> columns_of(std::size_t file) const;
    /// Bytes of them in files [first, last), as they are stored.
    std::uint64_t bytes_stored(std::size_t first, std::size_t last) const;
    /// Adds the numbers of the files that rows are read from.
    void add_files_on_disk(std::set<std::size_t>& numbers) const;
    /// Bytes of all rows that are not in memory yet, with each file's rounded up to 64.
    std::size_t bytes_on_disk() const;
    /// Reads part `which` of `parts` of every file's rows into `memory`.
    void fill(Source& source, std::span<std::byte> memory, int which, int parts) const;
    /// From now on rows come from `memory`, which all parts were read into.
    void read_from_memory(std::span<std::byte const> memory);

    /// Reads the field of these samples, any of them, in any order.
    ///
    /// Throws  Error 65 or 74 that names file, dataset and samples
    void read(Source& source, std::span<std::int64_t const> indices, Values& into,
              Scratch& scratch) const;
    void read_reals(Source& source, std::span<std::int64_t const> indices, std::span<float> into,
                    Scratch& scratch) const;
    /// Reads stored values of any type but f16, not normalised; all rows of ragged samples.
    std::vector<double> read_stored(Source& source, std::span<std::int64_t const> indices,
                                    Scratch& scratch) const;
    void read_wholes(Source& source, std::span<std::int64_t const> indices,
                     std::span<std::int64_t> into, Scratch& scratch) const;
    /// The same for consecutive samples.
    void read_wholes(Source& source, Span samples, std::span<std::int64_t> into,
                     Scratch& scratch) const;

  private:
    static Column::Context context_of(Source& source);
    std::string offsets_name() const { return info_.name + "_offsets"; }
    /// Samples that lie contiguously in a file; one may be wanted more than once.
    struct Run {
        std::size_t file = 0;
        Span rows;
        std::int64_t first = 0;                 ///< number of the first in the data set
        std::span<std::size_t const> positions; ///< where they are wanted, in order of the samples
        bool in_order = false; ///< each is wanted once, and they one after the other

        template <class Value>
        std::span<Value> target(std::span<Value> values, std::size_t elements) const;
    };
    /// Calls `deliver` with each run of the samples.
    template <class Deliver>
    void for_runs(Source const& source, std::span<std::int64_t const> indices,
                  std::vector<std::size_t>& order, Deliver deliver) const;
    Span rows_of(Span samples) const;
    std::size_t sample_bytes() const;
    void require_tokens(Source const& source, std::span<std::int64_t const> indices,
                        Values const& values) const;
    void require_marks(Source const& source, std::span<std::int64_t const> indices,
                       Values const& values) const;
    void require_all_rows(h5::File const& file, std::string const& offsets,
                          std::int64_t rows) const;
    std::int64_t samples_in(std::int64_t rows, h5::File const& file) const;
    std::span<std::byte const> read_run(Source& source, Run const& run, Scratch& scratch) const;
    void read_ragged(Source& source, std::span<std::int64_t const> indices, Values& into,
                     Scratch& scratch) const;
    Span rows_of_sample(Source& source, std::size_t file, std::int64_t sample,
                        Scratch& scratch) const;
    /// Calls `use(file, column, bytes)` with each column that is on the disk and its part of
    /// memory.
    template <class Columns, class Bytes, class Use>
    static void for_columns_on_disk(Columns& columns, std::span<Bytes> memory, Use use);
    void require_alike(FieldInfo const& other, h5::File const& file) const;

    FieldInfo info_;
    std::vector<std::string> unapplied_;
    bool is_input_;
    Window window_;
    std::optional<Normaliser> normaliser_;
    std::size_t elements_ = 1;    ///< of a sample; ragged: of a row
    std::vector<Column> columns_; ///< by file
    std::vector<Column> offsets_; ///< by file, of a ragged field
};

} // namespace lockstep::data

#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/batch.hpp"
#include "lockstep/data/blocks.hpp"
#include "lockstep/data/facts.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
class Hasher;
class Packer;
class Unpacker;
} // namespace lockstep
namespace lockstep::h5 {
class File;
}

namespace lockstep::data {

class Division;

/// What a whole number per sample in the first target is.
enum class Labels {
    classes, ///< of a class
    guessed, ///< of a class, where the files name classes or all of the numbers can be classes
    none     ///< a value like any other
};

struct DatasetOptions {
    std::string files;               ///< a file, a list with commas, or a glob
    std::string inputs = "inputs";   ///< names of datasets in the files, with commas
    std::string targets = "targets"; ///< the same
    /// Each file is one sample: its datasets have no dimension over samples.
    bool sample_per_file = false;
    std::string weights{}; ///< name of the samples' weights; empty: they have none
    /// Tokens of a sample, at least 2: the inputs are cut into samples of this many entries,
    /// however long each document is, and targets are the entries that follow. 0: samples as they
    /// are.
    std::int64_t sequence = 0;
    /// With `sequence`: name of a dataset (u8) that is 0 for each token that is not to be learnt.
    /// It is cut as the targets are, and becomes the second of them. Empty: none.
    std::string mask{};
    Labels labels = Labels::guessed;
    bool channels_last = false; ///< the model takes the last dimension of a sample for channels
    bool inputs_alone = false;  ///< samples have no targets, whatever the files hold
};

/// The files that a text names, in order; a glob's are sorted.
///
/// Throws  Error 66 when a glob matches no file, 64 for an empty name or an unclosed quote. A plain
///         name is not looked up; a blank text gives no files
std::vector<std::filesystem::path> expand_files(std::string const& files);

/// The hosts that see the same files, on a file system that they share.
struct Viewers {
    int host = 0;  ///< which of them this one is
    int hosts = 1; ///< how many there are
};

/// One logical data set over one or several HDF5 files. HDF5 opens them, follows links to other
/// files and says where the bytes lie; the bytes are then read by position and decoded, from any
/// thread. Once set up by `keep_…`, `scale_as` and `expect_classes`, none of which may be called
/// while another thread reads, it does not change. What it keeps in memory is
/// bounded, except for 16 bytes per chunk of a chunked dataset, and 8 per sample where it has
/// weights.
class Dataset {
  public:
    /// Opens every file, and scans the labels once. Not collective; one thread of the process at a
    /// time, since HDF5 is called.
    ///
    /// Throws  Error 64 where no file or field is named, or a mask without `sequence`; 66 for a
    ///         missing file; 74 for one that cannot be read; 65 for one that is damaged or cut
    ///         short, whose shape or type differs from the others', or that holds a label or a
    ///         weight out of range
    explicit Dataset(DatasetOptions const& options);
    /// Opens the files by all ranks together: each opens a share of them and tells the others what
    /// it has found; hosts that see other files than rank 0 open them on their own. The ranks of a
    /// host keep what was found in shared memory.
    ///
    /// Collective  over `world`; same options on all ranks; the files are those that rank 0 finds
    /// Throws      AgreedError as the constructor; 65 where the files of some host hold other data
    static Dataset open_together(DatasetOptions const& options, comm::Communicator const& world);
    Dataset(Dataset&& other) noexcept;
    ~Dataset();

    /// Two sets that share these files, and what is kept of them in memory: the remaining samples,
    /// and `percent` (above 0, below 100) of them drawn with a seed, by class where there are
    /// labels. Each numbers its own samples from 0 on, in the order of this set, and counts its own
    /// classes; the drawn share has no weights.
    ///
    /// Throws  Error 64 when the share would have no sample, or leave at most one; 65 or 74 as
    /// `read`
    std::pair<Dataset, Dataset> divided(double percent, std::uint64_t seed) const;

    /// Reads and decodes everything into memory that the ranks of the host share, each rank a part.
    ///
    /// What is kept already stays as it is.
    ///
    /// Collective  over `host`, the ranks of one host, which opened the same files
    /// Throws      AgreedError 69 when the host's shared memory is too small; AgreedError as `read`
    void keep_in_memory(comm::Communicator const& host);

    /// Copies the files that samples are read from, including those that links lead to, to a
    /// directory of the host, and reads the copies from then on.
    ///
    /// Collective  over `host`, the ranks of one host, which opened the same files
    /// Throws      AgreedError 66, 65, 73 or 74 when a file cannot be read, or written there
    void keep_on_disk(std::filesystem::path const& directory, comm::Communicator const& host);

    /// Normalises the first input by these values, whatever the files say: one of each, one of each
    /// per channel, or none. `last`: where channels may be the first dimension or the last, they
    /// are the last.
    ///
    /// Throws  Error 65 where they are for another number of channels
    void scale_as(std::vector<double> mean, std::vector<double> std, bool last);

    /// From now on `read` accepts only classes as values of the first target: whole numbers from 0
    /// to below `classes`, whatever type they are stored in; and `ignored`, where there is one.
    void expect_classes(std::int64_t classes, std::optional<std::int64_t> ignored = {}) noexcept {
        expected_classes_ = classes;
        ignored_class_ = ignored;
    }

    std::int64_t samples() const noexcept;
    /// The number of a sample (0 to samples() - 1, not checked) among all that the files hold:
    /// another number if this set is a part of them.
    std::int64_t number_in_files(std::int64_t sample) const;
    /// The file that has a sample (0 to samples() - 1, not checked), and its number among those of
    /// that file.
    std::pair<std::filesystem::path, std::int64_t> place_of(std::int64_t sample) const;
    /// What the files say, and what the first input is normalised by.
    Facts const& facts() const noexcept { return facts_; }
    std::vector<FieldInfo> const& inputs() const noexcept { return facts_.inputs; }
    std::vector<FieldInfo> const& targets() const noexcept { return facts_.targets; }
    /// Shape and type of the first input.
    h5::Shape const& sample_shape() const noexcept { return inputs().front().shape; }
    h5::Type input_type() const noexcept { return inputs().front().type; }

    /// Whether the first target is a class (DatasetOptions::labels). If not, there are no counts,
    /// and the classes are those that the files name.
    bool has_labels() const noexcept;
    std::int64_t classes() const noexcept { return static_cast<std::int64_t>(names_.size()); }
    std::vector<std::string> const& class_names() const noexcept { return names_; }
    /// Names of the classes, where the files name them: all or none.
    std::vector<std::string> const& declared_classes() const noexcept { return facts_.classes; }
    /// Shape  [classes]; empty without labels
    std::vector<std::int64_t> const& class_counts() const noexcept { return counts_; }
    /// Shape  [samples], none negative; null where no weights were asked for
    std::shared_ptr<std::vector<double> const> weights() const noexcept { return weights_; }
    /// What the first input is normalised by; for u8 in units of 1/255.
    ///
    /// Shape  [channels], [1], or [0] where it is not normalised
    std::vector<double> const& mean() const noexcept { return facts_.mean; }
    std::vector<double> const& std() const noexcept { return facts_.std; }

    /// How many bytes of text each token stands for; empty where the files do not say.
    ///
    /// Shape  [vocabulary]
    std::vector<std::uint8_t> const& token_bytes() const noexcept { return facts_.token_bytes; }

    /// A hash of what the files hold, as far as it can be known without reading all of it.
    std::uint64_t fingerprint() const noexcept { return fingerprint_; }
    /// Hashes of the samples' weights, one for each of at most `groups` runs of files; empty
    /// without weights.
    std::vector<std::uint64_t> weight_hashes(std::size_t groups) const;
    /// Whether the second target is a mask (DatasetOptions::mask).
    bool is_masked() const;
    /// Warnings about the files: values that were never written, attributes that are not applied.
    std::vector<std::string> remarks() const;
    /// Samples that are best read together, those of a chunk or of 1 MiB, and how many such blocks
    /// can be kept decoded as a window.
    Blocks blocks() const;
    /// The hosts that see the same files, as `open_together` found them.
    Viewers viewers() const;
    /// How often a chunk was decoded so far.
    std::uint64_t chunks_decoded() const;

    /// Reads all fields of `batch.indices`, any samples (0 to samples() - 1, not checked) in any
    /// order. The first input is normalised: u8 is divided by 255; `mean` is subtracted, and the
    /// result divided by `std`. Any thread may read, with a `scratch` of its own.
    ///
    /// Throws  Error 65 or 74 that names the file, the dataset and the samples
    void read(Batch& batch, Scratch& scratch) const;

    /// The first input or target alone, where it is not ragged. Labels are not checked.
    ///
    /// Shape   into [indices, sample…]
    /// Throws  Error 65 or 74 as `read`
    void read_inputs(std::span<std::int64_t const> indices, std::span<float> into) const;
    void read_targets(std::span<std::int64_t const> indices, std::span<std::int64_t> into) const;
    void read_targets(std::span<std::int64_t const> indices, std::span<float> into) const;
    /// An input as it is stored, not normalised and not rounded; its type is not f16.
    ///
    /// Shape   [indices, sample…]; ragged: [rows, row…]
    /// Throws  Error 65 or 74 as `read`
    std::vector<double> read_stored(std::size_t input, std::span<std::int64_t const> indices) const;

  private:
    friend class Audit;
    struct Parts;

    Dataset(Dataset const& whole, std::shared_ptr<Division const> division, bool drawn);

    Dataset() = default;
    struct OfNoFile {};
    Dataset(DatasetOptions const& options, OfNoFile);
    enum class Look { form, all };
    void open_file(std::filesystem::path const& path, Look look);
    void require_fitting(h5::File const& file);
    void look_through(std::size_t number, h5::File const& file);
    void look_through_labels(std::size_t file, Hasher& hasher);
    void complete();
    Dataset of_no_file() const;
    void pack(std::size_t first, Packer& packer) const;
    void add(Unpacker& packed);
    void name_classes();
    /// Numbers in the files; `own` itself where all samples are ours.
    std::span<std::int64_t const> numbers_in_files(std::span<std::int64_t const> own,
                                                   std::vector<std::int64_t>& buffer) const;
    using LabelVisitor =
        std::function<void(std::int64_t first, std::span<std::int64_t const> labels)>;
    void for_labels(std::int64_t first, std::int64_t end, LabelVisitor const& visit) const;
    void require_labels(std::span<std::int64_t const> indices,
                        std::span<std::int64_t const> labels) const;
    void require_classes(std::span<std::int64_t const> samples, Values const& values) const;

    std::shared_ptr<Parts> parts_;
    std::shared_ptr<Division const> division_; ///< null: all samples of the files are ours
    bool drawn_ = false;                       ///< ours are the drawn ones
    Facts facts_;
    std::vector<std::string> names_; ///< of all classes, also where the files give none
    std::vector<std::int64_t> counts_;
    bool has_numbers_ = false; ///< whole numbers that no guess can take for classes
    std::shared_ptr<std::vector<double>> weights_;
    std::uint64_t fingerprint_ = 0;
    std::int64_t expected_classes_ = 0; ///< 0: values of the first target may be any
    std::optional<std::int64_t> ignored_class_{};
};

} // namespace lockstep::data

#pragma once

#include "import/source.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "alpha.hpp"

namespace lockstep::import {

/// Told how far an import is: what is being done, items done and in all.
using ImportProgress = std::function<void(std::string const&, std::int64_t done, std::int64_t all)>;

/// How items are dealt to train, validation and test.
struct SplitOptions {
    std::vector<double> shares{}; ///< up to three that sum to 1; empty: no split
    bool by_group = false;        ///< items of a group stay together
    std::uint64_t seed = 0;
};

struct ImportOptions {
    std::filesystem::path out{}; ///< a file; a directory where there are several sets
    SplitOptions split{};
    std::int64_t shard_samples = 0; ///< most samples of a file; 0: any number
    bool skip_bad = false;          ///< skip items that cannot be read, and list them
    bool overwrite = false;         ///< replace the data set files that are there
    int deflate = 0;                ///< 1 to 9: chunked and compressed; 0: contiguous
    /// Called on each rank before a part; what it throws on one ends the import on all, and it can
    /// continue later.
    std::function<void()> before_part{};
};

struct ImportedFile {
    std::filesystem::path path{};
    std::int64_t samples = 0;
    std::uint64_t bytes = 0;
};

/// What came of a set: how many samples, groups and members of each class.
struct ImportedSet {
    std::string name{}; ///< empty where there is one set without a name
    std::int64_t items = 0;
    std::int64_t samples = 0;
    std::int64_t groups = 0; ///< 0: not split by group
    std::vector<std::int64_t> class_counts{};
};

struct ImportReport {
    std::vector<ImportedFile> files{};
    std::vector<ImportedSet> sets{};
    std::vector<std::string> skipped{}; ///< one message for each bad item
    std::int64_t parts_kept = 0;        ///< parts of an interrupted import that were not done again
};

/// Imports all samples of a source. Items are decoded in parts by all ranks, each part a file with
/// a checksum in OUT.importing, where an interrupted import of the same source continues; then the
/// parts are joined to data set files, which appear under their names when they are durable. The
/// files' bytes do not depend on the number of ranks.
///
/// Collective  over `comm`; the same source and options on all ranks
/// Throws      AgreedError: 66 for a missing source, 65 for a damaged one, 73 or 74 when OUT cannot
///             be written, 64 for options that do not fit
ImportReport import_set(comm::Communicator const& comm, ImportSource const& source,
                        ImportOptions const& options, ImportProgress const& progress);

struct IdxImport {
    std::filesystem::path
        source{}; ///< a directory with train-… and t10k-… files, or "IMAGES,LABELS"
    std::vector<std::string> classes{}; ///< names; "0", "1", … when empty
};

/// IDX files, plain or gzipped (the format of MNIST and its kin): a training and a test set from a
/// directory, one set from a pair. Mean and standard deviation are in units of value / 255.
///
/// Throws  Error 66 for a missing source, 65 for a damaged one; so do those below
std::unique_ptr<ImportSource> idx_source(IdxImport const& options);

struct Hdf5Import {
    std::filesystem::path source{};
    std::vector<std::string> inputs{"inputs"};
    std::vector<std::string> targets{"targets"};
    std::string weights{};              ///< dataset of the samples' weights; empty: none
    std::vector<std::string> classes{}; ///< empty: the source's, or "0", "1", …
    std::string type{};                 ///< of the inputs; empty: as they are
    std::string split_by{}; ///< dataset of a whole number per sample: what a split keeps together
};

/// Any HDF5 file with one entry per sample, or rows of each sample with NAME_offsets, whatever its
/// layout and filters. The only input and the only target become `inputs` and `targets`; several
/// keep their names.
std::unique_ptr<ImportSource> hdf5_source(Hdf5Import const& options);

/// A CSV or TSV file that lists files with what is known of them; its first line names the columns.
struct LabelFile {
    std::filesystem::path path{}; ///< empty: classes are the folders
    std::string file = "file";    ///< column with the files' names, relative to the source
    std::string label = "label";  ///< column with the classes' names
};

struct ImageImport {
    std::filesystem::path source{};
    LabelFile labels{};
    std::string split_by{};  ///< a column of the label file, or "folder": the one below the class
    std::uint64_t width = 0; ///< 0: all images must have one size
    std::uint64_t height = 0;
    bool gray = false;
    Alpha alpha = Alpha::drop;
};

/// PNG and JPEG files in a folder for each class (below train, validation and test where these
/// are there), or listed in a file. Samples are u8, [3, height, width], or [1, …] in gray; with
/// Alpha::keep one channel more.
std::unique_ptr<ImportSource> image_source(ImageImport const& options);

struct SpeechImport {
    std::filesystem::path source{};
    LabelFile labels{}; ///< classes, as of images, where there are no transcripts
    /// A table with columns file and text, or lines ( NAME "TEXT" ) as in festvox' txt.done.data.
    std::filesystem::path transcripts{};
    std::string split_by{};    ///< a column of the table
    std::string text = "text"; ///< the column with the transcripts
    bool words = false;        ///< symbols are parted by blanks; else characters
    bool lowercase = false;    ///< of any script
    std::string drop{};        ///< characters that are left out
    std::string symbols{};     ///< characters, or words with commas; empty: all that occur, sorted
    bool raw = false;          ///< the recording itself instead of features
    std::uint64_t bands = 40;
};

/// Recordings with transcripts or classes. Inputs are ragged f32: [frames, bands] of log-mel
/// features (`LogMel`), or the values of the recording; targets the places of a transcript's
/// symbols among the class names, ragged, or the class.
std::unique_ptr<ImportSource> speech_source(SpeechImport const& options);

struct VideoImport {
    std::filesystem::path source{};
    LabelFile labels{};
    std::string split_by{}; ///< as of images; clips of a video stay together in any case
    std::uint64_t frames = 17;
    std::uint64_t stride = 0; ///< frames from the start of a clip to that of the next; 0: `frames`
    std::uint64_t width = 256;
    std::uint64_t height = 256;
    bool gray = false;
};

/// Clips of video files, or of folders with a PNG or JPEG file for each frame, in a folder for each
/// class or listed in a file. Samples are u8, [3, frames, height, width] or [1, …].
std::unique_ptr<ImportSource> video_source(VideoImport const& options);

struct SeriesImport {
    std::filesystem::path source{};
    std::vector<std::string> columns{}; ///< of the inputs; empty: all that have no other part
    std::string time{};                 ///< a column of dates or numbers that ascend; empty: none
    std::string group{};                ///< a column: a series for each of its values
    std::string target{};               ///< a column: each row is a sample, and this its class
    bool regression = false;            ///< the target is a number
    std::string split_by{};
    bool doubles = false;      ///< f64 instead of f32
    bool fill_forward = false; ///< an empty cell has the value above it
};

/// A CSV or TSV table. With `target`: inputs [rows, columns], targets [rows]. Without: a ragged
/// sample [rows, columns] for each group, whose class is its name. Times are in a dataset `time`,
/// f64, dates as seconds since 1970; the columns' names in an attribute `columns`.
std::unique_ptr<ImportSource> series_source(SeriesImport const& options);

} // namespace lockstep::import

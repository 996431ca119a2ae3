#pragma once

#include "h5/file.hpp"
#include "h5/text_rows.hpp"
#include "lockstep/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

/// The names in a file; none where it does not say. Other programs may mean something else by such
/// datasets.
///
/// Throws  Error 65 for a file of ours that says it in another form
std::optional<h5::TextRows> sources_in(h5::File const& file);

/// The same, of a file with this dataset of samples, or of tokens; none where another program's
/// file has another number of names than samples or documents.
///
/// Throws  Error 65 as sources_in, and for a file of ours with another number of names
std::optional<h5::TextRows> sources_of_samples(h5::File const& file, std::string const& field);

/// Tells what samples were made from: the names of pictures and recordings, the lines of tables, as
/// an import has noted them. One thread of the process at a time.
class SampleSources {
  public:
    /// `set` must outlive it; `sequence` as in its options: then a sample comes from the document
    /// in which it begins.
    explicit SampleSources(Dataset const& set, std::int64_t sequence = 0);

    /// Whether any of the set's files says what its samples, or its documents, were made from.
    ///
    /// Throws  Error 66 or 65 as File::open and sources_in
    bool tell(std::span<std::filesystem::path const> files) const;

    /// Empty where the file does not say, or has a field of this name.
    ///
    /// Throws  Error 65 for a file of ours that is damaged, or has another number of names
    std::string of(std::int64_t sample);

  private:
    void open(std::filesystem::path const& path);

    Dataset const& set_;
    std::int64_t sequence_;
    bool is_field_ = false; ///< the dataset of this name holds values of samples
    std::optional<h5::File> file_;
    std::optional<h5::TextRows> rows_;
    std::vector<std::int64_t> documents_; ///< first token of each, and the end
};

/// Reads all sources of a file of `samples` samples or documents.
///
/// Throws  Error 65 where they do not fit
void require_sources(h5::File const& file, std::uint64_t samples);

} // namespace lockstep::data

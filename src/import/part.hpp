#pragma once

#include "import/source.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spread.hpp"

namespace lockstep::import {

/// What was merged or left out of items, and of how many: one note for each text.
struct ImportNote {
    std::int64_t items = 0;
    std::string example; ///< the least of their names

    void add(std::int64_t more, std::string const& name) {
        items += more;
        example = example.empty() ? name : std::min(example, name);
    }
};
using ImportNotes = std::map<std::string, ImportNote>;

/// The samples that some consecutive items of a set gave, on their way into a data set file.
struct ImportPart {
    std::uint64_t samples = 0;
    /// The part's data of a field: its bytes and, for a ragged one, the rows of each sample.
    struct Column {
        std::vector<std::byte> bytes;
        std::vector<std::uint64_t> sample_rows;
    };
    std::vector<Column> columns;
    std::vector<Spread> spreads;                       ///< of the inputs' values, by channel
    std::map<std::int64_t, std::int64_t> class_counts; ///< of the classes that occur
    std::vector<std::string> skipped;
    ImportNotes notes;

    explicit ImportPart(ImportForm const& form);

    /// Throws  Error 70 for a sample that does not have the form's fields
    void add(ImportForm const& form, Sample const& sample);
};

/// The form of a source's samples, and, if `with_sources`, a last field that says what each was
/// made from, unless one of the source's own fields has this name.
ImportForm form_with_sources(ImportSource const& source, bool with_sources);

/// Decodes items [0, items.size()) of a list into samples of `form`, which is that of
/// `form_with_sources`. With `skip_bad`, an item that cannot be read yields no samples and is
/// listed.
ImportPart read_items(ImportSource const& source, ImportForm const& form,
                      std::vector<std::int64_t> const& items, bool skip_bad);

/// Writes a part under a checksum; `identity` says what it was made from.
void write_part(std::filesystem::path const& path, std::uint64_t identity, ImportPart const& part);

/// A part that was written before; none where it is missing, damaged, or made from something else.
std::optional<ImportPart> read_part(std::filesystem::path const& path, std::uint64_t identity,
                                    ImportForm const& form);

/// The rows of each sample alone, by field, of such a part: without the samples' bytes.
std::optional<std::vector<std::vector<std::uint64_t>>>
read_part_rows(std::filesystem::path const& path, std::uint64_t identity, ImportForm const& form);

} // namespace lockstep::import

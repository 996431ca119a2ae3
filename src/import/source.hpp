#pragma once

#include "h5/element_type.hpp"
#include "h5/file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::import {

/// One dataset of a data set file. A ragged one is stored flat, [all rows, row…], with
/// NAME_offsets [samples + 1], the first row of each sample and the end; the others as
/// [samples, row…].
struct ImportField {
    std::string name{};
    h5::Type type = h5::Type::u8;
    h5::Shape row{}; ///< shape of a sample, or of one row of a ragged sample
    bool ragged = false;

    std::uint64_t row_bytes() const { return h5::elements(row) * h5::size_of(type); }
};

/// The form of an import's output, whatever its samples are.
struct ImportForm {
    std::vector<ImportField> fields{}; ///< inputs first
    std::vector<std::string> class_names{};
    /// Mean and standard deviation of the inputs: none, one for all, or one per channel
    /// (row.front()).
    enum class Moments { none, one, by_channel } moments = Moments::none;
    std::vector<double> mean{}; ///< as given by the source, where they are not computed
    std::vector<double> std{};
    std::vector<std::pair<std::string, std::vector<std::string>>> texts{}; ///< more attributes
    std::vector<std::pair<std::string, std::vector<double>>> numbers{};    ///< more attributes
    /// More datasets, which are not of samples: texts of any length, and tables.
    std::vector<std::pair<std::string, std::string>> long_texts{};
    std::vector<std::pair<std::string, std::vector<std::uint8_t>>> tables{};
};

/// The bytes of one sample, in the order of the form's fields and this machine's byte order.
struct Sample {
    std::vector<std::vector<std::byte>> fields;
    std::int64_t label = -1; ///< counted; -1: none
    std::string place{};     ///< in its item, such as ", frame 34", where an item has several
};

/// Where samples come from: a list of items, known without decoding, each of which yields samples.
class ImportSource {
  public:
    ImportSource() = default;
    ImportSource(ImportSource const&) = delete;
    ImportSource& operator=(ImportSource const&) = delete;
    virtual ~ImportSource() = default;

    /// A text that changes when the source or its options change, so that an interrupted import
    /// resumes only with what it began from.
    virtual std::string identity() const = 0;
    virtual ImportForm const& form() const = 0;

    virtual std::int64_t items() const = 0;
    virtual std::string name(std::int64_t item) const = 0; ///< of its file, for messages
    /// What is stored of it, so that a sample can be found again: a path below the source, or the
    /// line of a table.
    virtual std::string origin(std::int64_t item) const;
    virtual std::int64_t label(std::int64_t item) const; ///< what a split is stratified by
    virtual std::string group(std::int64_t item) const;  ///< what a split keeps together
    virtual std::string set(std::int64_t item)
        const; ///< "train", "validation" or "test" where the source says it, else ""
    /// What is skipped in the source, and the like: lines for the user.
    virtual std::vector<std::string> remarks() const { return {}; }
    /// Bytes that checksums of the source's own stand for, which `verify` reads; 0: none.
    virtual std::uint64_t bytes_to_verify() const { return 0; }
    /// Compares part `which` of `parts` of the source with these checksums.
    ///
    /// Throws   Error 65 where samples have changed since they were imported
    /// Returns  a remark where something else has; else empty
    virtual std::string verify(std::uint64_t which, std::uint64_t parts) const;
    /// Items that are read together before the next status reduction: some megabytes of samples.
    virtual std::int64_t items_at_once() const = 0;

    /// Decodes an item; `sink` is given its samples in order. Returns what of it was merged or left
    /// out, such as "its 2 channels were averaged": the import counts the items of each text.
    ///
    /// Throws  Error 65 or 66 for a bad item, which --skip-bad skips
    virtual std::string read(std::int64_t item,
                             std::function<void(Sample&&)> const& sink) const = 0;
};

/// Name, size and time of change of a file or folder, for `identity`. Throws  Error 66
std::string stamp(std::filesystem::path const& path);

/// A name that is stored is UTF-8 without a zero byte, at which other programs would end it.
///
/// Throws  Error 65 that names `which`
void require_stored(std::string const& name, std::string const& which);

/// Values as bytes, for a sample's field.
template <class T>
std::vector<std::byte> bytes_of(std::vector<T> const& values) {
    auto const* first = reinterpret_cast<std::byte const*>(values.data());
    return {first, first + values.size() * sizeof(T)};
}

} // namespace lockstep::import

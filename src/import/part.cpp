#include "part.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep::import {

namespace {

std::size_t channels_of(ImportForm const& form) {
    switch (form.moments) {
    case ImportForm::Moments::one:
        return 1;
    case ImportForm::Moments::by_channel:
        return static_cast<std::size_t>(form.fields.front().row.front());
    default:
        return 0;
    }
}

/// Adds values to the spreads of their channels, which follow each other within a row.
template <class T>
void add_moments(ImportPart& part, std::vector<std::byte> const& bytes, std::uint64_t row) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) {
        std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    }
    auto const channels = part.spreads.size();
    auto const inner = row / channels;
    for (std::size_t at = 0, block = 0; inner > 0 && at < values.size(); at += inner, ++block) {
        part.spreads[block % channels].merge(
            spread_of(std::span<T const>(values).subspan(at, inner)));
    }
}

void add_moments(ImportPart& part, ImportField const& field, std::vector<std::byte> const& bytes) {
    auto const row = h5::elements(field.row);
    switch (field.type) {
    case h5::Type::u8:
        return add_moments<std::uint8_t>(part, bytes, row);
    case h5::Type::i16:
        return add_moments<std::int16_t>(part, bytes, row);
    case h5::Type::i32:
        return add_moments<std::int32_t>(part, bytes, row);
    case h5::Type::f32:
        return add_moments<float>(part, bytes, row);
    case h5::Type::f64:
        return add_moments<double>(part, bytes, row);
    default:
        throw Error(
            ExitCode::software,
            {concat("cannot compute the mean and standard deviation of dataset ", field.name),
             concat("its values have type ", h5::name_of(field.type),
                    ", which this calculation does not support"),
             "This is a bug; please report it"});
    }
}

/// A part's numbers and bytes, one after the other.
class Packer {
  public:
    void add(std::uint64_t number) { bytes_.append(reinterpret_cast<char const*>(&number), 8); }
    template <class T>
    void add(std::vector<T> const& values) {
        add(values.size());
        bytes_.append(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T));
    }
    void add(std::string const& text) {
        add(text.size());
        bytes_ += text;
    }
    std::string& bytes() { return bytes_; }

  private:
    std::string bytes_;
};

/// Takes out what a Packer put in, never beyond its end.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

    std::uint64_t number() {
        std::uint64_t value = 0;
        std::memcpy(&value, take(8).data(), 8);
        return value;
    }
    template <class T>
    std::vector<T> values() {
        auto const count = number();
        auto const raw =
            take(count > bytes_.size() / sizeof(T) ? bytes_.size() + 1 : count * sizeof(T));
        std::vector<T> values(count);
        if (!raw.empty()) {
            std::memcpy(values.data(), raw.data(), raw.size());
        }
        return values;
    }
    std::string text() { return std::string(take(number())); }

  private:
    std::string_view take(std::size_t count) {
        if (count > bytes_.size()) {
            throw Error(ExitCode::data,
                        {"a temporary file of the import is incomplete",
                         "the file ends before its last value, so it is damaged or from another "
                         "version of this program",
                         "Remove the directory OUT.importing, and run the import again"});
        }
        auto const part = bytes_.substr(0, count);
        bytes_.remove_prefix(count);
        return part;
    }
    std::string_view bytes_;
};

} // namespace

ImportPart::ImportPart(ImportForm const& form)
    : columns(form.fields.size()), spreads(channels_of(form)) {}

void ImportPart::add(ImportForm const& form, Sample const& sample) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
        auto const& field = form.fields[i];
        auto const& bytes = sample.fields.at(i);
        auto const row = field.row_bytes();
        if (field.ragged ? bytes.size() % row != 0 : bytes.size() != row) {
            throw Error(
                ExitCode::software,
                {concat("a sample of dataset ", field.name, " has ", bytes.size(), " bytes"),
                 concat(field.ragged ? "expected a multiple of " : "expected ", row, " bytes"),
                 "This is a bug; please report it"});
        }
        columns[i].bytes.insert(columns[i].bytes.end(), bytes.begin(), bytes.end());
        if (field.ragged) {
            columns[i].sample_rows.push_back(bytes.size() / row);
        }
    }
    if (!spreads.empty()) {
        add_moments(*this, form.fields.front(), sample.fields.front());
    }
    if (sample.label >= 0) {
        class_counts[sample.label] += 1;
    }
    ++samples;
}

ImportForm form_with_sources(ImportSource const& source, bool with_sources) {
    auto form = source.form();
    auto const offsets = concat(data::sources_name, "_offsets");
    bool const taken = std::ranges::any_of(form.fields, [&](ImportField const& field) {
        return field.name == data::sources_name || field.name == offsets;
    });
    if (with_sources && !taken) {
        form.fields.push_back({data::sources_name, h5::Type::u8, {}, true});
    }
    return form;
}

ImportPart read_items(ImportSource const& source, ImportForm const& form,
                      std::vector<std::int64_t> const& items, bool skip_bad) {
    bool const with_sources = form.fields.size() > source.form().fields.size();
    ImportPart part(form);
    for (auto const item : items) {
        // An item's samples are added when all of them could be read.
        std::vector<Sample> samples;
        std::string note;
        try {
            note = source.read(item, [&](Sample&& one) { samples.push_back(std::move(one)); });
        } catch (Error const& error) {
            bool const bad = error.code() == ExitCode::data || error.code() == ExitCode::no_input;
            if (!skip_bad || !bad) {
                throw;
            }
            part.skipped.push_back(concat(error.text().what, ": ", error.text().why));
            continue;
        }
        for (auto& sample : samples) {
            if (with_sources) {
                auto const from = concat(source.origin(item), sample.place);
                sample.fields.push_back(bytes_of(std::vector<char>(from.begin(), from.end())));
            }
            part.add(form, sample);
        }
        if (!note.empty()) {
            part.notes[note].add(1, source.name(item));
        }
    }
    return part;
}

namespace {

/// What a part begins with: its identity, the bytes of its head, and a hash of the head.
constexpr std::size_t prefix_bytes = 24;

/// The number of samples and, of each column, the rows of each sample.
std::string head_of(ImportPart const& part) {
    Packer packer;
    packer.add(part.samples);
    for (auto const& column : part.columns) {
        packer.add(column.sample_rows);
    }
    return std::move(packer.bytes());
}

} // namespace

void write_part(std::filesystem::path const& path, std::uint64_t identity, ImportPart const& part) {
    Packer packer;
    auto const head = head_of(part);
    packer.add(identity);
    packer.add(head.size());
    packer.add(hash64(head));
    packer.bytes() += head;
    for (auto const& column : part.columns) {
        packer.add(column.bytes);
    }
    packer.add(part.spreads);
    packer.add(part.class_counts.size());
    for (auto const& [label, count] : part.class_counts) {
        packer.add(static_cast<std::uint64_t>(label));
        packer.add(static_cast<std::uint64_t>(count));
    }
    packer.add(part.skipped.size());
    for (auto const& text : part.skipped) {
        packer.add(text);
    }
    packer.add(part.notes.size());
    for (auto const& [text, note] : part.notes) {
        packer.add(text);
        packer.add(static_cast<std::uint64_t>(note.items));
        packer.add(note.example);
    }
    packer.add(hash64(packer.bytes()));
    // No fsync: a part that did not reach the disk has a wrong checksum and is made again.
    PartialFile partial(partial_path(path));
    File::create_new(partial.path()).write_at(0, std::as_bytes(std::span(packer.bytes())));
    partial.rename_unsynced(path);
}

std::optional<ImportPart> read_part(std::filesystem::path const& path, std::uint64_t identity,
                                    ImportForm const& form) {
    if (!std::filesystem::exists(path)) {
        return std::nullopt;
    }
    auto const text = read_text(path);
    auto const content =
        std::string_view(text).substr(0, text.size() - std::min<std::size_t>(text.size(), 8));
    if (content.size() < 16 || Unpacker(content).number() != identity ||
        Unpacker(std::string_view(text).substr(content.size())).number() != hash64(content)) {
        return std::nullopt;
    }
    Unpacker unpacker(content.substr(std::min(content.size(), prefix_bytes)));
    ImportPart part(form);
    part.samples = unpacker.number();
    for (auto& column : part.columns) {
        column.sample_rows = unpacker.values<std::uint64_t>();
    }
    for (auto& column : part.columns) {
        column.bytes = unpacker.values<std::byte>();
    }
    part.spreads = unpacker.values<Spread>();
    for (auto left = unpacker.number(); left > 0; --left) {
        auto const label = static_cast<std::int64_t>(unpacker.number());
        part.class_counts[label] = static_cast<std::int64_t>(unpacker.number());
    }
    part.skipped.resize(unpacker.number());
    for (auto& skipped : part.skipped) {
        skipped = unpacker.text();
    }
    for (auto notes = unpacker.number(); notes > 0; --notes) {
        auto& note = part.notes[unpacker.text()];
        note.items = static_cast<std::int64_t>(unpacker.number());
        note.example = unpacker.text();
    }
    return part;
}

std::optional<std::vector<std::vector<std::uint64_t>>>
read_part_rows(std::filesystem::path const& path, std::uint64_t identity, ImportForm const& form) {
    if (!std::filesystem::exists(path)) {
        return std::nullopt;
    }
    auto const file = File::open_read(path);
    auto const size = file.size();
    std::string prefix(std::min<std::uint64_t>(prefix_bytes, size), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(prefix)));
    Unpacker numbers(prefix);
    if (prefix.size() < prefix_bytes || numbers.number() != identity) {
        return std::nullopt;
    }
    auto const bytes = numbers.number();
    if (bytes > size - prefix_bytes) {
        return std::nullopt;
    }
    std::string head(bytes, '\0');
    file.read_at(prefix_bytes, std::as_writable_bytes(std::span(head)));
    if (numbers.number() != hash64(head)) {
        return std::nullopt;
    }
    Unpacker unpacker(head);
    static_cast<void>(unpacker.number()); // of samples
    std::vector<std::vector<std::uint64_t>> rows(form.fields.size());
    for (auto& each : rows) {
        each = unpacker.values<std::uint64_t>();
    }
    return rows;
}

} // namespace lockstep::import

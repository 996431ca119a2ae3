#include "data/audit.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "h5/file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "dataset_parts.hpp"

namespace lockstep::data {

namespace {

constexpr char const* heading = "lockstep data 1";
constexpr char const* weights_word = "weights "; ///< before their hashes, last in a record
constexpr std::size_t sampled = 16;              ///< samples that are compared at once
constexpr std::size_t max_groups = 64; ///< of files; a record is no longer for more of them
/// Bytes that are looked at before a run continues with them, where their files' times have
/// changed.
constexpr std::uint64_t soon_read = std::uint64_t{1} << 30;

/// A share of a busy core of less than two in a hundred, and the disk when nobody else wants it.
void be_modest() {
    auto const self = static_cast<id_t>(::syscall(SYS_gettid));
    ::setpriority(PRIO_PROCESS, self, 19);
    constexpr long of_process = 1;
    constexpr long idle = 3L << 13;
    ::syscall(SYS_ioprio_set, of_process, static_cast<long>(self), idle);
}

std::string hash_of_values(Values const& values) {
    Hasher hasher;
    hasher.add(std::as_bytes(std::span(values.reals)));
    hasher.add(std::as_bytes(std::span(values.wholes)));
    hasher.add(std::as_bytes(std::span(values.offsets)));
    return hex(hasher.digest());
}

Error changed(std::string const& dataset, std::filesystem::path const& file,
              std::string const& where) {
    return {ExitCode::usage,
            {concat("data.train is not what this run was trained on: dataset ", dataset, " of ",
                    file.string()),
             concat("its contents have changed", where),
             "Bring the old files back, allow it with --force, or start over with "
             "--checkpoint.resume none"}};
}

std::string joined_hashes(std::vector<std::uint64_t> const& hashes) {
    std::vector<std::string> texts;
    texts.reserve(hashes.size());
    for (auto const hash : hashes) {
        texts.push_back(hex(hash));
    }
    return joined(texts, " ");
}

/// The sample of each of the places that are compared.
std::int64_t sample_at(std::size_t place, std::int64_t samples) {
    return static_cast<std::int64_t>(place) * (samples - 1) / (sampled - 1);
}

} // namespace

/// One dataset in a run of files.
struct Audit::Group {
    Dataset const* set = nullptr;
    Field const* field = nullptr; ///< null: what is no dataset of the only file
    std::size_t first = 0;        ///< of the files
    std::size_t last = 0;         ///< one after
    bool recorded = false;
    std::uint64_t stamp = 0; ///< of sizes and times
    std::uint64_t form = 0;  ///< of how the bytes lie
    std::uint64_t full = 0;  ///< of all bytes; 0: not known yet
    std::uint64_t expected = 0;
    std::vector<ByteRange> covered{}; ///< by other checksums; the last: that of all else
};

/// Where the walk is.
struct Audit::Walk {
    std::size_t group = 0;
    std::size_t file = 0;
    std::size_t column = 0;
    bool in_column = false;
    std::size_t range = 0;
    std::uint64_t at = 0;
    Hasher hasher{};
    std::vector<std::byte> block{};
    std::vector<ByteRange> ranges{}; ///< of the column
    std::vector<std::uint64_t> sums{};
};

/// By field: those of 16 samples, from the first to the last.
std::vector<std::string> Audit::sample_hashes(Dataset const& set) {
    std::vector<std::string> samples;
    Scratch scratch;
    auto& parts = *set.parts_;
    for (auto const* const fields : {&parts.inputs, &parts.targets}) {
        for (auto const& field : *fields) {
            std::vector<std::string> hashes;
            for (std::size_t place = 0; place < sampled; ++place) {
                std::array const index{sample_at(place, set.samples())};
                Values values;
                field.read(parts.source, index, values, scratch);
                hashes.push_back(hash_of_values(values));
            }
            samples.push_back(joined(hashes, " "));
        }
    }
    return samples;
}

Audit::Audit(std::vector<Dataset const*> const& sets) : walk_(std::make_unique<Walk>()) {
    for (auto const* const set : sets) {
        if (set != nullptr) {
            add_groups(*set, first_ == nullptr);
            auto const remarks = set->remarks();
            remarks_.insert(remarks_.end(), remarks.begin(), remarks.end());
            add_rests(*set);
            first_ = first_ == nullptr ? set : first_;
        }
    }
    if (first_ != nullptr) {
        samples_ = sample_hashes(*first_);
    }
}

std::uint64_t Audit::hash_of(Dataset const& set) {
    return hash64(
        concat(set.fingerprint(), " ", set.samples(), " ", joined(sample_hashes(set), " ")));
}

Audit::~Audit() {
    end_thread();
}

void Audit::end_thread() {
    stop_ = true;
    if (thread_.joinable()) {
        thread_.join();
    }
}

void Audit::add_groups(Dataset const& set, bool recorded) {
    auto const& parts = *set.parts_;
    auto const files = parts.source.named.size();
    auto const groups = std::min(files, max_groups);
    for (auto const* const fields : {&parts.inputs, &parts.targets}) {
        for (auto const& field : *fields) {
            for (std::size_t i = 0; i < groups; ++i) {
                Group group{.set = &set,
                            .field = &field,
                            .first = files * i / groups,
                            .last = files * (i + 1) / groups,
                            .recorded = recorded};
                Hasher stamp;
                Hasher form;
                for (auto file = group.first; file < group.last; ++file) {
                    for (auto const* const column : field.columns_of(file)) {
                        auto const text = parts.source.files.stamp(column->file());
                        stamp.add(std::as_bytes(std::span(text)));
                        auto const how = column->form_text();
                        form.add(std::as_bytes(std::span(how)));
                    }
                }
                bytes_ += field.bytes_stored(group.first, group.last);
                group.stamp = stamp.digest();
                group.form = form.digest();
                groups_.push_back(std::move(group));
            }
        }
    }
}

/// Names, shapes, attributes and the checksums themselves are under one more checksum.
void Audit::add_rests(Dataset const& set) {
    constexpr std::size_t most = 512; // to open very many takes longer than a start may
    auto const& source = set.parts_->source;
    auto const files = source.named.size();
    for (std::size_t file = 0; file < files && files <= most; ++file) {
        auto const h5 = h5::File::open(source.path_of(file));
        if (auto const added = added_datasets(h5); !added.empty()) {
            remarks_.push_back(concat("warning: ", joined(added, ", "), " added to ",
                                      source.path_of(file).string(),
                                      " since its import: only its samples have checksums"));
        } else if (auto covered = covered_ranges(h5)) {
            groups_.push_back(
                {.set = &set, .first = file, .last = file + 1, .covered = std::move(*covered)});
        }
    }
}

std::string Audit::record() const {
    std::ostringstream text;
    text << heading << "\n" << (first_ == nullptr ? 0 : first_->samples()) << "\n";
    for (auto const& hashes : samples_) {
        text << hashes << "\n";
    }
    std::lock_guard const lock(mutex_);
    for (auto const& group : groups_) {
        if (group.recorded) {
            text << hex(group.stamp) << " " << hex(group.form) << " " << hex(group.full) << "\n";
        }
    }
    if (first_ != nullptr && first_->weights()) {
        text << weights_word << joined_hashes(first_->weight_hashes(max_groups)) << "\n";
    }
    return text.str();
}

/// Of the weights, nothing is read that the set has not read itself.
void Audit::compare_weights(std::string const& record) const {
    auto const at = record.find(concat("\n", weights_word));
    if (at == std::string::npos || !first_->weights()) {
        return; // of an older program, or another deck
    }
    auto const begin = at + 1 + std::string_view(weights_word).size();
    auto const before = split(record.substr(begin, record.find('\n', begin) - begin), ' ');
    auto const now = split(joined_hashes(first_->weight_hashes(max_groups)), ' ');
    auto const& source = first_->parts_->source;
    for (std::size_t i = 0; i < now.size() && before.size() == now.size(); ++i) {
        if (before[i] != now[i]) {
            throw changed(first_->parts_->weights,
                          source.path_of(source.named.size() * i / now.size()),
                          ", the samples' weights");
        }
    }
}

void Audit::compare(std::string const& record) {
    std::istringstream lines(record);
    std::string line;
    if (!std::getline(lines, line) || line != heading || first_ == nullptr) {
        return; // of an older program
    }
    auto const& source = first_->parts_->source;
    std::int64_t samples = 0;
    lines >> samples;
    std::getline(lines, line);
    if (samples != first_->samples()) {
        throw changed(first_->inputs().front().name, source.path_of(0),
                      concat(": there are ", first_->samples(), " samples, and were ", samples,
                             "; files were added or taken away, or one was made again"));
    }
    std::vector<FieldInfo> fields = first_->inputs();
    fields.insert(fields.end(), first_->targets().begin(), first_->targets().end());
    for (std::size_t f = 0; f < samples_.size() && std::getline(lines, line); ++f) {
        auto const before = split(line, ' ');
        auto const now = split(samples_[f], ' ');
        for (std::size_t place = 0; place < std::min(before.size(), now.size()); ++place) {
            if (before[place] != now[place]) {
                auto const sample = sample_at(place, samples);
                auto const file = source.file_of(sample);
                throw changed(fields[f].name, source.path_of(file),
                              concat(", in sample ", sample - source.first_of_file[file]));
            }
        }
    }
    compare_weights(record);
    std::vector<Group*> doubtful;
    std::uint64_t doubtful_bytes = 0;
    for (auto& group : groups_) {
        std::uint64_t stamp = 0;
        std::uint64_t form = 0;
        std::uint64_t full = 0;
        if (!group.recorded || !(lines >> std::hex >> stamp >> form >> full)) {
            break; // the samples lie in another number of files
        }
        if (form != group.form) { // hashes of other bytes say nothing: nobody knows what changed
            throw changed(
                group.field->info().name, source.path_of(group.first),
                ", or lie otherwise in their file (written again, chunks of other sizes)");
        }
        group.expected = full;
        if (group.expected != 0 && stamp != group.stamp) {
            doubtful.push_back(&group);
            doubtful_bytes += group.field->bytes_stored(group.first, group.last);
        }
    }
    if (doubtful_bytes <= soon_read) {
        std::ranges::for_each(doubtful, [&](Group* group) { look_at(*group); });
    }
}

/// Walks through one group out of turn.
void Audit::look_at(Group& group) {
    auto const walk = std::exchange(walk_, std::make_unique<Walk>());
    walk_->group = static_cast<std::size_t>(&group - groups_.data());
    walk_->file = group.first;
    while (group.full == 0 && !failed_ && one_block()) {
    }
    walk_ = std::make_unique<Walk>();
    require_good();
}

void Audit::start() {
    try {
        thread_ = std::thread([this] {
            be_modest();
            walk();
        });
    } catch (std::system_error const&) {
        // The host gives no more threads: `finish` walks.
    }
}

void Audit::walk() {
    while (!stop_ && !failed_ && one_block()) {
    }
}

void Audit::require_good() const {
    if (failed_) {
        std::lock_guard const lock(mutex_);
        throw Error(*failure_);
    }
}

void Audit::finish() {
    end_thread();
    stop_ = false;
    walk();
    require_good();
}

/// What the walk knows of a group when it has seen all of it.
void Audit::close(Group& group) {
    auto const digest = std::max<std::uint64_t>(walk_->hasher.digest(), 1); // 0 says something
    std::lock_guard const lock(mutex_);
    group.full = digest;
    if (group.expected != 0 && group.expected != digest) {
        failure_ = changed(group.field->info().name, group.set->parts_->source.path_of(group.first),
                           group.last - group.first > 1
                               ? concat(", or that of one of the ", group.last - group.first - 1,
                                        " files after it")
                               : "");
        failed_ = true;
    }
    walk_->hasher = Hasher();
}

/// Takes the walk one block further; false at its end.
bool Audit::one_block() {
    if (walk_->group == groups_.size()) {
        return false;
    }
    try {
        auto& group = groups_[walk_->group];
        if (group.field == nullptr) {
            auto const& source = group.set->parts_->source;
            require_rest(*source.files.get(source.named[group.first]), group.covered);
            walk_->file = group.last;
        }
        if (walk_->file == group.last) {
            close(group);
            walk_->file = ++walk_->group < groups_.size() ? groups_[walk_->group].first : 0;
        } else {
            hash_block(group);
        }
        return true;
    } catch (...) {
        std::lock_guard const lock(mutex_);
        failure_ = current_error();
        failed_ = true;
        return false;
    }
}

void Audit::hash_block(Group const& group) {
    auto& walk = *walk_;
    auto const columns = group.field->columns_of(walk.file);
    auto const& column = *columns[walk.column];
    auto const file = group.set->parts_->source.files.get(column.file());
    if (!walk.in_column) {
        walk.in_column = true;
        walk.ranges = column.stored();
        walk.hasher.add(walk.ranges.empty() ? column.view() : std::span<std::byte const>());
        walk.sums.resize(column.checksums().count / sizeof(std::uint64_t));
        file->read_at(column.checksums().first, std::as_writable_bytes(std::span(walk.sums)));
    }
    if (walk.range == walk.ranges.size()) {
        walk.range = 0;
        walk.in_column = false;
        walk.column = (walk.column + 1) % columns.size();
        walk.file += walk.column == 0 ? 1 : 0;
        return;
    }
    auto const& range = walk.ranges[walk.range];
    walk.block.resize(std::min(checksum_block, range.count - walk.at));
    auto const begin = range.first + walk.at;
    file->read_at(begin, walk.block);
    auto const hash = hash64(walk.block);
    if (auto const number = walk.at / checksum_block;
        number < walk.sums.size() && walk.sums[number] != hash) {
        throw Error(ExitCode::data,
                    {concat(file->path().string(), ": dataset ", column.name(), ", block ", number,
                            " (bytes ", begin, " to ", begin + walk.block.size() - 1, ")"),
                     "its checksum is wrong: it is not what was imported",
                     "Bring the file back or import it again; lockstep data verify lists all that "
                     "has changed"});
    }
    walk.hasher.add(std::as_bytes(std::span(&hash, 1)));
    walk.at += walk.block.size();
    if (walk.at == range.count) {
        ++walk.range;
        walk.at = 0;
    }
}

} // namespace lockstep::data

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "audit_parts.hpp"

namespace lockstep::data {

namespace {

constexpr char const* heading = "lockstep data 1";
constexpr char const* weights_word = "weights "; ///< before their hashes, last in a record
constexpr std::size_t sampled = 16;              ///< samples that are compared at once
/// Bytes that are looked at before a run continues with them, where their files' times have
/// changed.
constexpr std::uint64_t soon_read = std::uint64_t{1} << 30;

std::string hash_of_values(Values const& values) {
    Hasher hasher;
    hasher.add(std::as_bytes(std::span(values.reals)));
    hasher.add(std::as_bytes(std::span(values.wholes)));
    hasher.add(std::as_bytes(std::span(values.offsets)));
    return hex(hasher.digest());
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

Error changed_data(std::string const& dataset, std::filesystem::path const& file,
                   std::string const& where) {
    return {
        ExitCode::usage,
        {"data.train is not what this run was trained on",
         concat("the contents of dataset ", dataset, " of ", file.string(), " have changed", where),
         "Copy the old files back, allow the change with --force, or start over with "
         "--checkpoint.resume none"}};
}

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

std::uint64_t Audit::hash_of(Dataset const& set) {
    return hash64(
        concat(set.fingerprint(), " ", set.samples(), " ", joined(sample_hashes(set), " ")));
}

std::string Audit::record() const {
    auto text = concat(heading, "\n", first_ == nullptr ? 0 : first_->samples(), "\n");
    for (auto const& hashes : samples_) {
        text += concat(hashes, "\n");
    }
    std::lock_guard const lock(mutex_);
    for (auto const& group : groups_) {
        if (group.recorded) {
            text += concat(hex(group.stamp), " ", hex(group.form), " ", hex(group.full), "\n");
        }
    }
    if (first_ != nullptr && first_->weights()) {
        text += concat(weights_word, joined_hashes(first_->weight_hashes(max_groups)), "\n");
    }
    return text;
}

/// Compares the weights, for which nothing is read that the set has not read itself.
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
            throw changed_data(first_->parts_->weights,
                               source.path_of(source.named.size() * i / now.size()),
                               " (the samples' weights)");
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
        throw changed_data(first_->inputs().front().name, source.path_of(0),
                           concat("; data.train had ", samples, " samples and now has ",
                                  first_->samples(),
                                  ", because files were added, removed or rewritten"));
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
                throw changed_data(fields[f].name, source.path_of(file),
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
            throw changed_data(group.field->info().name, source.path_of(group.first),
                               ", or are stored differently (the file was rewritten, or its chunks "
                               "have other sizes)");
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

} // namespace lockstep::data

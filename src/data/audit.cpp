#include "data/audit.hpp"

#include "base/text.hpp"
#include "h5/file.hpp"

#include <algorithm>
#include <utility>

#include "audit_parts.hpp"

namespace lockstep::data {

Audit::Audit(std::vector<Dataset const*> const& sets, Viewers viewers)
    : viewers_(viewers), walk_(std::make_unique<Walk>()) {
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

Audit::~Audit() {
    end_thread();
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
                            .recorded = recorded,
                            .ours = turn_++ % viewers_.hosts == viewers_.host};
                Hasher stamp;
                Hasher form;
                for (auto file = group.first; file < group.last; ++file) {
                    for (auto const* const column : field.columns_of(file)) {
                        auto const text = parts.source.files.stamp_text(column->file());
                        stamp.add(std::as_bytes(std::span(text)));
                        auto const how = column->form_text();
                        form.add(std::as_bytes(std::span(how)));
                    }
                }
                bytes_ += group.ours ? field.bytes_stored(group.first, group.last) : 0;
                group.stamp = stamp.digest();
                group.form = form.digest();
                groups_.push_back(std::move(group));
            }
        }
    }
}

std::vector<std::uint64_t> Audit::known() const {
    std::vector<std::uint64_t> known;
    std::lock_guard const lock(mutex_);
    for (auto const& group : groups_) {
        if (group.recorded) {
            known.push_back(group.full);
        }
    }
    return known;
}

void Audit::learn(std::span<std::uint64_t const> known) {
    std::lock_guard const lock(mutex_);
    auto next = known.begin();
    for (auto& group : groups_) {
        if (!group.recorded || next == known.end()) {
            continue;
        }
        if (group.full == 0 && *next != 0) {
            settle(group, *next);
        }
        ++next;
    }
}

/// Names, shapes, attributes and the checksums themselves are under one more checksum.
void Audit::add_rests(Dataset const& set) {
    constexpr std::size_t max = 512; // to open very many takes longer than a start may
    auto const& source = set.parts_->source;
    auto const files = source.named.size();
    bool const ours = viewers_.host == 0;
    for (std::size_t file = 0; file < files && files <= max && ours; ++file) {
        auto const h5 = h5::File::open(source.path_of(file));
        if (auto const added = added_datasets(h5); !added.empty()) {
            remarks_.push_back(concat(
                "warning: dataset", added.size() == 1 ? " " : "s ", joined(added, ", "),
                added.size() == 1 ? " was" : " were", " added to ", source.path_of(file).string(),
                " after the import, so only the file's imported datasets are verified"));
        } else if (auto covered = covered_ranges(h5)) {
            groups_.push_back(
                {.set = &set, .first = file, .last = file + 1, .covered = std::move(*covered)});
        }
    }
}

} // namespace lockstep::data

#include "base/text.hpp"
#include "h5/file.hpp"

#include <algorithm>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "audit_parts.hpp"

namespace lockstep::data {

namespace {

/// A share of a busy core of less than two in a hundred, and the disk when nobody else wants it.
void be_modest() {
    auto const self = static_cast<id_t>(::syscall(SYS_gettid));
    ::setpriority(PRIO_PROCESS, self, 19);
    constexpr long of_process = 1;
    constexpr long idle = 3L << 13;
    ::syscall(SYS_ioprio_set, of_process, static_cast<long>(self), idle);
}

} // namespace

void Audit::end_thread() {
    stop_ = true;
    if (thread_.joinable()) {
        thread_.join();
    }
}

/// Walks through one group out of turn.
void Audit::look_at(Group& group) {
    auto const walk = std::exchange(walk_, std::make_unique<Walk>());
    group.ours = true;
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
    std::lock_guard const lock(mutex_);
    settle(group, std::max<std::uint64_t>(walk_->hasher.digest(), 1)); // 0 says something
    walk_->hasher = Hasher();
}

/// The hash of a group is known, and compared; the mutex is held.
void Audit::settle(Group& group, std::uint64_t digest) {
    group.full = digest;
    if (group.expected != 0 && group.expected != digest) {
        auto const after = group.last - group.first - 1;
        failure_ =
            changed_data(group.field->info().name, group.set->parts_->source.path_of(group.first),
                         after > 1    ? concat(", or those of one of the next ", after, " files")
                         : after == 1 ? ", or those of the next file"
                                      : "");
        failed_ = true;
    }
}

/// Takes the walk one block further; false at its end.
bool Audit::one_block() {
    if (walk_->group == groups_.size()) {
        return false;
    }
    try {
        auto& group = groups_[walk_->group];
        if (!group.ours) {
            next_group();
            return true;
        }
        if (group.field == nullptr) {
            auto const& source = group.set->parts_->source;
            require_rest(*source.files.get(source.named[group.first]), group.covered);
            walk_->file = group.last;
        }
        if (walk_->file == group.last) {
            close(group);
            next_group();
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

void Audit::next_group() {
    walk_->file = ++walk_->group < groups_.size() ? groups_[walk_->group].first : 0;
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
        throw Error(
            ExitCode::data,
            {concat(file->path().string(), ", dataset ", column.name(), ", block ", number,
                    " (bytes ", begin, " to ", begin + walk.block.size() - 1, ")"),
             "the checksum of this block is wrong, so the block has changed since the import",
             "Copy the file back from a backup, or import the data again. lockstep data verify "
             "lists all changed blocks"});
    }
    walk.hasher.add(std::as_bytes(std::span(&hash, 1)));
    walk.at += walk.block.size();
    if (walk.at == range.count) {
        ++walk.range;
        walk.at = 0;
    }
}

} // namespace lockstep::data

#include "file_pool.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::data {

FilePool::Entry FilePool::as_it_is(std::filesystem::path const& path) {
    std::error_code missing;
    auto const bytes = std::filesystem::file_size(path, missing);
    auto const changed = std::filesystem::last_write_time(path, missing);
    if (missing) {
        throw Error(ExitCode::no_input, {concat("cannot open ", path.string()), missing.message(),
                                         "Check the path, or make the file first"});
    }
    return {path.string(), bytes, changed, nullptr, 0};
}

void FilePool::require_same(Entry const& entry, Entry const& now) {
    if (now.bytes != entry.bytes || now.changed != entry.changed) {
        throw Error(ExitCode::data, {entry.path, "it was changed since the run began",
                                     "Start again, and do not change data while a run uses it"});
    }
}

std::size_t FilePool::add(std::filesystem::path const& path) {
    files_.push_back(as_it_is(path));
    last_added_ = files_.size() - 1;
    return last_added_;
}

std::size_t FilePool::number_of(std::filesystem::path const& path) {
    auto const name = path.string();
    if (files_[last_added_].path == name) {
        return last_added_;
    }
    auto const [place, is_new] = linked_.try_emplace(name, files_.size());
    if (is_new) {
        files_.push_back(as_it_is(path));
    }
    return place->second;
}

std::string FilePool::stamp(std::size_t number) const {
    auto const& entry = files_[number];
    return concat(entry.bytes, " ", entry.changed.time_since_epoch().count(), "\n");
}

void FilePool::read_from_copy(std::size_t number, std::filesystem::path const& copy) {
    std::lock_guard const lock(mutex_);
    auto& entry = files_[number];
    require_same(entry, as_it_is(entry.path));
    if (entry.open) {
        --open_;
    }
    entry = as_it_is(copy);
}

std::shared_ptr<File const> FilePool::get(std::size_t number) const {
    std::lock_guard const lock(mutex_);
    auto const& entry = files_[number];
    entry.used = ++clock_;
    if (entry.open) {
        return entry.open;
    }
    auto file = std::make_shared<File const>(File::open_read(entry.path));
    require_same(entry, as_it_is(entry.path));
    if (open_ == max_open_) {
        close_oldest();
    }
    entry.open = std::move(file);
    ++open_;
    return entry.open;
}

void FilePool::close_oldest() const {
    Entry const* oldest = nullptr;
    for (auto const& entry : files_) {
        if (entry.open && (oldest == nullptr || entry.used < oldest->used)) {
            oldest = &entry;
        }
    }
    oldest->open.reset(); // closed when the last thread that reads it is done
    --open_;
}

} // namespace lockstep::data

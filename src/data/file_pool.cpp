#include "file_pool.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>

namespace lockstep::data {

std::size_t FilePool::add(std::filesystem::path const& path) {
    std::error_code missing;
    auto const bytes = std::filesystem::file_size(path, missing);
    auto const changed = std::filesystem::last_write_time(path, missing);
    if (missing) {
        throw Error(ExitCode::no_input, {concat("cannot open ", path.string()), missing.message(),
                                         "Check the path, or make the file first"});
    }
    files_.push_back({path.string(), bytes, changed, nullptr, 0});
    return files_.size() - 1;
}

std::shared_ptr<File const> FilePool::get(std::size_t number) const {
    std::lock_guard const lock(mutex_);
    auto const& entry = files_[number];
    entry.used = ++clock_;
    if (entry.open) {
        return entry.open;
    }
    auto file = std::make_shared<File const>(File::open_read(entry.path));
    if (file->size() != entry.bytes ||
        std::filesystem::last_write_time(entry.path) != entry.changed) {
        throw Error(ExitCode::data, {entry.path, "it was changed since the run began",
                                     "Leave data alone while it is used, and start again"});
    }
    if (open_ == most_open_) {
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

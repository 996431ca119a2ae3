#include "file_pool.hpp"

#include "base/input_error.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::data {

void FilePool::Stamp::pack(Packer& packer) const {
    packer.put(std::string_view(path));
    packer.put(bytes);
    packer.put(static_cast<std::int64_t>(changed.time_since_epoch().count()));
}

FilePool::Stamp FilePool::Stamp::unpacked(Unpacker& packed) {
    Stamp stamp;
    stamp.path = packed.get_text();
    stamp.bytes = packed.get<std::uint64_t>();
    using Time = std::filesystem::file_time_type;
    stamp.changed = Time(Time::duration(packed.get<std::int64_t>()));
    return stamp;
}

FilePool::Stamp FilePool::stamp_now(std::filesystem::path const& path) {
    std::error_code missing;
    auto const bytes = std::filesystem::file_size(path, missing);
    auto const changed = std::filesystem::last_write_time(path, missing);
    if (missing) {
        throw input_error(path, missing.value());
    }
    return {path.string(), bytes, changed};
}

void FilePool::require_same(Stamp const& stamp) {
    auto const now = stamp_now(stamp.path);
    if (now.bytes != stamp.bytes || now.changed != stamp.changed) {
        throw Error(ExitCode::data, {concat(stamp.path, " cannot be read any further"),
                                     "the file has changed since the run began",
                                     "Put the file's old contents back and resume the run, or "
                                     "start the run over. Do not change data while a run uses it"});
    }
}

std::size_t FilePool::add(Stamp stamp) {
    files_.push_back({.stamp = std::move(stamp)});
    last_added_ = files_.size() - 1;
    return last_added_;
}

std::size_t FilePool::number_of(std::filesystem::path const& path) {
    auto const name = path.string();
    if (files_[last_added_].stamp.path == name) {
        return last_added_;
    }
    auto const known = linked_.find(name);
    return known == linked_.end() ? number_of(stamp_now(path)) : known->second;
}

std::size_t FilePool::number_of(Stamp stamp) {
    if (files_[last_added_].stamp.path == stamp.path) {
        return last_added_;
    }
    auto const [place, is_new] = linked_.try_emplace(stamp.path, files_.size());
    if (is_new) {
        files_.push_back({.stamp = std::move(stamp)});
    }
    return place->second;
}

std::string FilePool::stamp_text(std::size_t number) const {
    auto const& stamp = files_[number].stamp;
    return concat(stamp.bytes, " ", stamp.changed.time_since_epoch().count(), "\n");
}

void FilePool::read_from_copy(std::size_t number, std::filesystem::path const& copy) {
    std::lock_guard const lock(mutex_);
    auto& entry = files_[number];
    require_same(entry.stamp);
    if (entry.open) {
        --open_;
    }
    entry = {.stamp = stamp_now(copy)};
}

std::shared_ptr<File const> FilePool::get(std::size_t number) const {
    std::lock_guard const lock(mutex_);
    auto const& entry = files_[number];
    entry.used = ++clock_;
    if (entry.open) {
        return entry.open;
    }
    auto file = std::make_shared<File const>(File::open_read(entry.stamp.path));
    require_same(entry.stamp);
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

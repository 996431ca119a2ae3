#include "monitor/late_file.hpp"

#include "base/environment.hpp"
#include "base/lease.hpp"
#include "base/notice.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace lockstep::monitor {

namespace {

constexpr std::size_t kept_at_most = std::size_t{64} << 20;

/// Whether the last line has its end; a host that goes down, or a full disk, may have cut it.
bool ends_whole(std::filesystem::path const& path) {
    auto const file = File::open_read(path);
    auto const bytes = file.size();
    auto last = std::byte{'\n'};
    if (bytes > 0) {
        file.read_at(bytes - 1, {&last, 1});
    }
    return last == std::byte{'\n'};
}

} // namespace

Opening opening_of_record(std::filesystem::path const& file) {
    std::error_code unknown;
    auto const kind = std::filesystem::symlink_status(file, unknown);
    bool const other = std::filesystem::exists(kind) && !std::filesystem::is_regular_file(kind);
    return other || environment_text("LOCKSTEP_CONTINUES").empty() ? Opening::now : Opening::late;
}

LateFile::LateFile(std::filesystem::path path, Opening opening) : path_(std::move(path)) {
    if (opening == Opening::now) {
        open();
    }
}

void LateFile::open() {
    file_ = File::append(path_);
    if (std::filesystem::is_regular_file(path_) && !ends_whole(path_)) {
        file_->append_text("\n");
    }
}

void LateFile::append_text(std::string const& text) {
    if (file_ && kept_.empty()) {
        file_->append_text(text);
        return;
    }
    keep(text);
    if (!is_claimed_here(path_.parent_path())) {
        return;
    }
    if (!file_) {
        open();
    }
    file_->append_text(kept_);
    kept_.clear();
    if (auto const lost = std::exchange(lost_, 0); lost > 0) {
        notice(concat("warning: ", path_.string(), " lacks ", amount_of(lost, "line"),
                      " that there was no memory for while its directory was absent"));
    }
}

void LateFile::keep(std::string const& text) {
    kept_ += text;
    if (kept_.size() > kept_at_most) {
        auto const end =
            kept_.begin() + static_cast<std::ptrdiff_t>(kept_.find('\n', kept_.size() / 2) + 1);
        lost_ += std::count(kept_.begin(), end, '\n');
        kept_.erase(kept_.begin(), end);
    }
}

} // namespace lockstep::monitor

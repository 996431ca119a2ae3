#include "base/line_reader.hpp"

#include <algorithm>
#include <span>

namespace lockstep {

LineReader::LineReader(std::filesystem::path const& path, std::uint64_t from) : place_(from) {
    std::error_code none;
    if (std::filesystem::is_regular_file(path, none)) {
        file_.emplace(File::open_read(path));
    }
}

/// Whether there is more of the file.
bool LineReader::fill() {
    constexpr std::uint64_t part_bytes = 1 << 16;
    auto const size = file_ ? file_->size() : 0;
    part_.resize(std::min(size > place_ ? size - place_ : 0, part_bytes));
    at_ = 0;
    if (!part_.empty()) {
        file_->read_at(place_, std::as_writable_bytes(std::span(part_)));
    }
    return !part_.empty();
}

bool LineReader::next(std::string& line) {
    line.clear();
    has_end_ = false;
    auto const before = place_;
    while (!has_end_ && (at_ < part_.size() || fill())) {
        auto const stop = std::min(part_.find('\n', at_), part_.size());
        line.append(part_, at_, std::min(stop - at_, longest_line - line.size()));
        has_end_ = stop < part_.size();
        auto const taken = stop - at_ + (has_end_ ? 1 : 0);
        at_ += taken;
        place_ += taken;
    }
    return place_ > before;
}

} // namespace lockstep

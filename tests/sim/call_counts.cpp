#include "call_counts.hpp"

#include <cstdio>
#include <span>
#include <string_view>

#include "mapped_file.hpp"

namespace lockstep::sim {

CallCounts::CallCounts(std::string const& directory) {
    if (!directory.empty()) {
        rows_ = std::static_pointer_cast<Row>(mapped_file(directory, rows * sizeof(Row)));
    }
}

void CallCounts::add(char const* name) {
    if (rows_ == nullptr) {
        return;
    }
    auto& row = found_[name];
    if (row == nullptr) {
        row = &row_of(name);
    }
    ++row->calls;
}

/// The same words may lie at two places.
CallCounts::Row& CallCounts::row_of(char const* name) {
    std::span const all(rows_.get(), rows);
    for (auto& row : all.first(used_)) {
        if (std::string_view(row.name.data()) ==
            std::string_view(name).substr(0, row.name.size() - 1)) {
            return row;
        }
    }
    bool const is_full = used_ + 1 == rows;
    auto& row = is_full ? all.back() : all[used_++];
    std::snprintf(row.name.data(), row.name.size(), "%s", is_full ? "others" : name);
    return row;
}

} // namespace lockstep::sim

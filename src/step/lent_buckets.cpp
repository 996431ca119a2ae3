#include "step/lent_buckets.hpp"

#include <algorithm>

namespace lockstep::train {

LentBuckets::LentBuckets(comm::Exchange& exchange)
    : exchange_(exchange), uses_(static_cast<std::size_t>(exchange.partition().buckets()), 0) {}

bool LentBuckets::is_held(int bucket) const {
    return std::ranges::find(held_, bucket) != held_.end();
}

void LentBuckets::use(std::span<int const> buckets) {
    for (int const bucket : buckets) {
        ++uses_[static_cast<std::size_t>(bucket)];
    }
    for (int const bucket : buckets) {
        hold(bucket);
        exchange_.lend(bucket);
    }
    if (!buckets.empty() && std::ranges::find(buckets, latest_) == buckets.end()) {
        ask_for_next(buckets);
    }
}

void LentBuckets::release(std::span<int const> buckets) noexcept {
    for (int const bucket : buckets) {
        --uses_[static_cast<std::size_t>(bucket)];
    }
}

/// Makes room for it, and makes it the one used last.
void LentBuckets::hold(int bucket) {
    std::erase(held_, bucket);
    while (held_.size() >= kept) {
        auto const unused = std::ranges::find_if(
            held_, [&](int each) { return uses_[static_cast<std::size_t>(each)] == 0; });
        if (unused == held_.end()) {
            break;
        }
        auto const given = *unused;
        held_.erase(unused);
        exchange_.give_back(given);
    }
    held_.push_back(bucket);
}

/// The parameters that are read for the first time in a pass tell its direction.
void LentBuckets::ask_for_next(std::span<int const> buckets) {
    bool const ascends = latest_ >= 0 && buckets.back() > latest_;
    latest_ = ascends ? buckets.back() : buckets.front();
    int const next = ascends ? latest_ + 1 : latest_ - 1;
    if (next >= 0 && next < exchange_.partition().buckets() && !is_held(next)) {
        hold(next);
        exchange_.ask_for(next);
    }
}

} // namespace lockstep::train

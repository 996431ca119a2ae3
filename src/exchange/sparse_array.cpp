#include "sparse_array.hpp"

#include "arena/arena.hpp"

namespace lockstep::train {

SparseArray::SparseArray(torch::Device device, std::int64_t size)
    : pages_(reserve_device_pages(device, sizeof(float) * static_cast<std::size_t>(size))),
      uses_(pages_of({0, size}).last, 0),
      values_(borrowed(static_cast<float*>(pages_->data()), size, device)) {}

SparseArray::Pages SparseArray::pages_of(Range range) const {
    auto const elements = pages_->page_bytes() / sizeof(float);
    return {static_cast<std::size_t>(range.first) / elements,
            (static_cast<std::size_t>(range.last) + elements - 1) / elements};
}

template <class Action>
void SparseArray::for_unused(Pages pages, Action const& action) const {
    for (auto first = pages.first; first < pages.last; ++first) {
        auto last = first;
        while (last < pages.last && uses_[last] == 0) {
            ++last;
        }
        if (first < last) {
            action(first, last);
            first = last;
        }
    }
}

void SparseArray::populate(Range range) {
    if (range.count() == 0) {
        return;
    }
    auto const pages = pages_of(range);
    for_unused(pages, [&](std::size_t first, std::size_t last) { pages_->populate(first, last); });
    for (auto page = pages.first; page < pages.last; ++page) {
        ++uses_[page];
    }
}

void SparseArray::discard(Range range) noexcept {
    if (range.count() == 0) {
        return;
    }
    auto const pages = pages_of(range);
    for (auto page = pages.first; page < pages.last; ++page) {
        --uses_[page];
    }
    for_unused(pages, [&](std::size_t first, std::size_t last) { pages_->discard(first, last); });
}

} // namespace lockstep::train

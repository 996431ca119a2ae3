#include "checkpoint/diff.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/reader.hpp"
#include "h5/element_type.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::checkpoint {

namespace {

constexpr std::uint64_t elements_at_once = std::uint64_t{1} << 18;

/// What differs of one view, or of what no view covers.
struct Tally {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

/// The views of one array, by their first element.
std::vector<h5::View const*> views_of(Reader const& reader, std::string const& array) {
    std::vector<h5::View const*> views;
    for (auto const& view : reader.views()) {
        if (view.source == array) {
            views.push_back(&view);
        }
    }
    std::stable_sort(views.begin(), views.end(),
                     [](auto const* a, auto const* b) { return a->first < b->first; });
    return views;
}

/// The view that holds an element; null when there is none.
h5::View const* view_at(std::vector<h5::View const*> const& views, std::uint64_t element) {
    auto const after =
        std::upper_bound(views.begin(), views.end(), element,
                         [](std::uint64_t value, auto const* view) { return value < view->first; });
    if (after == views.begin()) {
        return nullptr;
    }
    auto const* const view = *std::prev(after);
    return element - view->first < h5::elements(view->shape) ? view : nullptr;
}

/// Calls `found(element)` for each element of an array that differs, in order.
template <class Found>
void each_difference(Reader const& a, Reader const& b, Array const& array, Found const& found) {
    auto const unit = h5::size_of(array.type);
    std::vector<std::byte> of_a(elements_at_once * unit);
    std::vector<std::byte> of_b(elements_at_once * unit);
    for (std::uint64_t at = 0; at < array.elements; at += elements_at_once) {
        auto const count = std::min(elements_at_once, array.elements - at);
        a.read(array.name, at, std::span(of_a).first(count * unit));
        b.read(array.name, at, std::span(of_b).first(count * unit));
        if (std::memcmp(of_a.data(), of_b.data(), count * unit) == 0) {
            continue;
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            if (std::memcmp(of_a.data() + i * unit, of_b.data() + i * unit, unit) != 0) {
                found(at + i);
            }
        }
    }
}

void compare_contents(Reader const& a, Reader const& b, Array const& array,
                      std::vector<Difference>& differences) {
    auto const views = views_of(a, array.name);
    std::map<h5::View const*, Tally> tallies;
    each_difference(a, b, array, [&](std::uint64_t element) {
        auto const* const view = view_at(views, element);
        auto& tally = tallies[view];
        if (tally.count++ == 0) {
            tally.first = view == nullptr ? element : element - view->first;
        }
    });
    auto const report = [&](std::string const& where, std::uint64_t elements, Tally const& tally) {
        differences.push_back(
            {where, concat(count_text(static_cast<std::int64_t>(tally.count)), " of ",
                           count_text(static_cast<std::int64_t>(elements)),
                           tally.count == 1 ? " elements differs, at index "
                                            : " elements differ, the first at index ",
                           tally.first)});
    };
    for (auto const* const view : views) { // in the order of the array, not of their addresses
        if (auto const found = tallies.find(view); found != tallies.end()) {
            report(view->path, h5::elements(view->shape), found->second);
        }
    }
    if (auto const found = tallies.find(nullptr); found != tallies.end()) {
        report(array.name, array.elements, found->second);
    }
}

std::string form_of(Array const& array) {
    return concat(count_text(static_cast<std::int64_t>(array.elements)), " elements of ",
                  h5::name_of(array.type));
}

std::string form_of(h5::View const& view) {
    std::vector<std::string> extents;
    for (auto const extent : view.shape) {
        extents.push_back(std::to_string(extent));
    }
    return concat("[", joined(extents, ", "), "] from element ", view.first, " of ", view.source);
}

/// Compares two maps by name; `equal(x, y)` and `text(x)` say how.
template <class Map, class Equal, class Text>
void compare_maps(Map const& a, Map const& b, Equal const& equal, Text const& text,
                  std::vector<Difference>& differences) {
    for (auto const& [name, value] : a) {
        auto const other = b.find(name);
        if (other == b.end()) {
            differences.push_back({name, "only in the first checkpoint"});
        } else if (!equal(value, other->second)) {
            differences.push_back({name, concat(text(value), " and ", text(other->second))});
        }
    }
    for (auto const& [name, value] : b) {
        if (!a.contains(name)) {
            differences.push_back({name, "only in the second checkpoint"});
        }
    }
}

void compare_texts(std::string const& where, std::string const& a, std::string const& b,
                   std::vector<Difference>& differences) {
    if (a == b) {
        return;
    }
    auto const where_in_a = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    auto const line = 1 + std::count(a.begin(), where_in_a, '\n');
    differences.push_back({where, concat("differs from line ", line, " on")});
}

/// What is compared by its form: arrays by name, views by path.
template <class Thing>
std::map<std::string, std::string> forms_of(std::vector<Thing> const& things,
                                            std::string Thing::*name) {
    std::map<std::string, std::string> forms;
    for (auto const& thing : things) {
        forms[thing.*name] = form_of(thing);
    }
    return forms;
}

} // namespace

Comparison diff(std::filesystem::path const& a, std::filesystem::path const& b) {
    for (auto const& path : {a, b}) {
        if (content_of(File::open_read(path)) == Content::outputs) {
            throw not_a_checkpoint(path, "is a file of outputs",
                                   "To compare two files of outputs, use h5diff");
        }
    }
    Reader const first(a);
    Reader const second(b);
    auto const same = [](auto const& x, auto const& y) { return x == y; };
    auto const same_bits = [](double x, double y) {
        return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
    };
    auto const plain = [](auto const& value) { return concat(value); };
    auto const exact = [](double value) {
        return significant(value, std::numeric_limits<double>::max_digits10);
    };

    Comparison result;
    compare_maps(forms_of(first.arrays(), &Array::name), forms_of(second.arrays(), &Array::name),
                 same, plain, result.state);
    compare_maps(forms_of(first.views(), &h5::View::path),
                 forms_of(second.views(), &h5::View::path), same, plain, result.state);
    for (auto const& array : first.arrays()) {
        if (second.has(array.name) && form_of(second.array(array.name)) == form_of(array)) {
            compare_contents(first, second, array, result.state);
        }
    }
    auto const& x = first.record();
    auto const& y = second.record();
    compare_maps(x.integers, y.integers, same, plain, result.state);
    compare_maps(x.reals, y.reals, same_bits, exact, result.state);
    compare_texts("history", x.history, y.history, result.state);
    compare_texts("deck", x.deck, y.deck, result.records);
    auto const brief = [](std::string const& note) {
        constexpr std::size_t longest = 256;
        return note.size() <= longest ? note : concat("a text of ", note.size(), " bytes");
    };
    compare_maps(x.notes, y.notes, same, brief, result.records);
    return result;
}

} // namespace lockstep::checkpoint

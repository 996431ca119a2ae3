#include "task/edit_distance.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::task {

std::int64_t edit_distance(std::span<std::int64_t const> a, std::span<std::int64_t const> b) {
    std::vector<std::int64_t> row(b.size() + 1); // from what there is of a so far to b's beginnings
    std::iota(row.begin(), row.end(), std::int64_t{0});
    for (auto const symbol : a) {
        auto diagonal = row[0]++;
        for (std::size_t j = 1; j < row.size(); ++j) {
            auto const substituted = diagonal + (symbol == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

namespace {

using WordNumbers = std::map<std::vector<std::int64_t>, std::int64_t>;

std::vector<std::int64_t> words_of(std::span<std::int64_t const> symbols, std::int64_t blank,
                                   WordNumbers& numbers) {
    std::vector<std::int64_t> words;
    for (auto at = symbols.begin(); at != symbols.end();) {
        auto const end = std::find(at, symbols.end(), blank);
        if (end != at) {
            auto const next = static_cast<std::int64_t>(numbers.size());
            words.push_back(numbers.try_emplace({at, end}, next).first->second);
        }
        at = end == symbols.end() ? end : end + 1;
    }
    return words;
}

} // namespace

WordEdits word_edits(std::span<std::int64_t const> reference,
                     std::span<std::int64_t const> hypothesis, std::int64_t blank) {
    WordNumbers numbers;
    auto const expected = words_of(reference, blank, numbers);
    return {edit_distance(expected, words_of(hypothesis, blank, numbers)),
            static_cast<std::int64_t>(expected.size())};
}

} // namespace lockstep::task

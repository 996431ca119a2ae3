#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::task {

/// The fewest insertions, deletions and substitutions that turn one sequence into the other
/// (Levenshtein, 1966; the table of Wagner, Fischer, J. ACM 21, 1974, by rows).
std::int64_t edit_distance(std::span<std::int64_t const> a, std::span<std::int64_t const> b);

/// Compares two sequences of symbols word by word: words are runs of symbols separated by `blank`.
///
/// Returns  the edits between the words of both, and how many `reference` has
struct WordEdits {
    std::int64_t edits = 0;
    std::int64_t words = 0;
};
WordEdits word_edits(std::span<std::int64_t const> reference,
                     std::span<std::int64_t const> hypothesis, std::int64_t blank);

} // namespace lockstep::task

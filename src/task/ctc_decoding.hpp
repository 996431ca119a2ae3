#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::task {

/// A network's output for a recording: for each frame, the log-probabilities of the symbols and,
/// last, of the blank.
struct FrameScores {
    std::span<float const> log_probabilities; ///< [frames, symbols + 1]
    std::int64_t symbols = 0;

    std::int64_t frames() const {
        return static_cast<std::int64_t>(log_probabilities.size()) / (symbols + 1);
    }
    std::span<float const> frame(std::int64_t t) const {
        auto const width = static_cast<std::size_t>(symbols + 1);
        return log_probabilities.subspan(static_cast<std::size_t>(t) * width, width);
    }
};

/// The most probable symbol of each frame, without repetitions and blanks (Graves et al.,
/// "Connectionist Temporal Classification", ICML 2006).
std::vector<std::int64_t> decode_greedily(FrameScores const& scores);

/// The transcript whose alignments together have the highest probability, as found by a search that
/// keeps the `beam` most probable prefixes after each frame (prefix beam search: Hannun et al.,
/// arXiv 1408.2873, without a language model). Where probabilities are equal, the prefix that was
/// found first wins.
std::vector<std::int64_t> decode_by_prefixes(FrameScores const& scores, std::size_t beam);

} // namespace lockstep::task

#include "monitor/stall_judge.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace lockstep::monitor {

namespace {

/// "ranks 0 and 2 wait for it in an all-reduce"; empty when none waits.
std::string waiting_for(std::vector<RankView> const& ranks, std::size_t culprit) {
    std::vector<int> waiting;
    std::string_view where;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (i != culprit && !ranks[i].left && ranks[i].wait != comm::Wait::nothing) {
            waiting.push_back(ranks[i].rank);
            where = comm::name_of(ranks[i].wait);
        }
    }
    if (waiting.empty()) {
        return "";
    }
    return concat("; ", ranks_text(waiting), waiting.size() == 1 ? " waits in " : " wait in ",
                  where);
}

std::string why_frozen(char state) {
    switch (state) {
    case 'T':
        return "its process is stopped (SIGSTOP)";
    case 't':
        return "a debugger holds its process";
    case 'D':
        return "its process waits for a disk or a network file system";
    default:
        return "its process gets no processor time";
    }
}

std::string why_still(RankView const& rank, std::string const& unheard) {
    if (rank.state == 'D') {
        return why_frozen('D');
    }
    if (rank.wait == comm::Wait::nothing) {
        return rank.state == 'R' ? "it computes but makes no progress" : "it hangs";
    }
    return concat(
        "it waits in ", comm::name_of(rank.wait), " (call ", rank.collectives,
        unheard.empty()
            ? std::string(") while all ranks wait for each other, so the network is "
                          "broken or the ranks run different code")
            : concat("), perhaps for a rank of ", unheard, ", which cannot be heard by UDP"));
}

constexpr double left_to_others_s = 10; ///< that hear more

constexpr char const* limit = "Look at that host and at the log. If the rank is only slow, raise "
                              "communication.timeout-seconds";

} // namespace

std::string place_of(RankView const& rank) {
    auto place = concat("rank ", rank.rank, " (", rank.host, ", ", rank.device,
                        rank.from_afar ? "), last heard in " : ") in ", comm::name_of(rank.phase));
    if (!rank.activity.empty() && rank.activity != comm::name_of(rank.phase)) {
        place += concat(" (", rank.activity, ")");
    }
    return rank.step > 0 ? concat(place, " at step ", rank.step) : place;
}

void observe(RankView& rank, std::optional<ProcessState> const& process) {
    rank.gone = rank.gone || !process || process->killed;
    rank.state = process ? process->state : '?';
}

void StallJudge::note(std::vector<RankView> const& ranks, double now) {
    bool const first_look = seen_.empty();
    seen_.resize(ranks.size());
    double newest = 0;
    has_stuck_ = false;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        auto& seen = seen_[i];
        if (first_look || seen.progress != ranks[i].progress) {
            seen.progress = ranks[i].progress;
            seen.progress_at = now;
        }
        if (first_look || seen.beats != ranks[i].beats) {
            seen.beats = ranks[i].beats;
            seen.beat_at = now;
        }
        newest = std::max(newest, seen.progress_at);
        auto const since = ranks[i].wait == comm::Wait::nothing ? seen.progress_at : seen.beat_at;
        has_stuck_ = has_stuck_ || now - since > patience_s_ / 2;
    }
    youngest_s_ = now - newest;
}

std::optional<Verdict> StallJudge::judge(std::vector<RankView> const& ranks, double now,
                                         Elsewhere const& elsewhere) {
    note(ranks, now);
    // The end of MPI orders the ranks' ends: from the first that is through, nothing can be lost.
    if (std::any_of(ranks.begin(), ranks.end(), [](auto const& rank) { return rank.left; })) {
        return std::nullopt;
    }
    auto const lost =
        std::find_if(ranks.begin(), ranks.end(), [](auto& rank) { return rank.gone; });
    if (lost != ranks.end()) {
        return Verdict{static_cast<std::size_t>(lost - ranks.begin()),
                       {"its process is gone", "it was killed, or crashed",
                        "Look at that host, and at the last lines that this rank has printed"}};
    }
    std::optional<std::size_t> frozen;
    std::optional<std::size_t> still;
    std::size_t behind = 0;
    auto const patience_s = patience_s_ + elsewhere.turn_s;
    auto const deaf_s = elsewhere.unheard.empty() ? 0 : left_to_others_s;
    bool all_still = elsewhere.still_s > patience_s_ && youngest_s_ > patience_s + deaf_s;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (now - seen_[i].beat_at > patience_s &&
            (!frozen || seen_[i].beat_at < seen_[*frozen].beat_at)) {
            frozen = i;
        }
        bool const stands = now - seen_[i].progress_at > patience_s;
        if (stands && ranks[i].wait == comm::Wait::nothing &&
            (!still || seen_[i].progress_at < seen_[*still].progress_at)) {
            still = i;
        }
        all_still = all_still && stands;
        // Of equals, one that waits for its disk is likelier to keep the others waiting.
        bool const as_far = ranks[i].collectives == ranks[behind].collectives;
        if (ranks[i].collectives < ranks[behind].collectives ||
            (as_far && ranks[i].state == 'D' && ranks[behind].state != 'D')) {
            behind = i;
        }
    }
    // Where all wait for the end of MPI, it is the launcher's.
    all_still = all_still && !elsewhere.stuck && ranks[behind].wait != comm::Wait::finalize;
    if (!frozen && (elsewhere.in_doubt || (!still && !all_still))) {
        return std::nullopt;
    }
    auto const at = frozen.value_or(still.value_or(behind));
    auto const since = now - (frozen ? seen_[at].beat_at : seen_[at].progress_at);
    return Verdict{
        at,
        {concat("no progress for ", fixed(since, 0), " s"),
         (frozen ? why_frozen(ranks[at].state) : why_still(ranks[at], elsewhere.unheard)) +
             waiting_for(ranks, at),
         limit}};
}

} // namespace lockstep::monitor

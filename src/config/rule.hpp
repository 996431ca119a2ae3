#pragma once

#include "config/named.hpp"
#include "config/needs.hpp"
#include "lockstep/config/deck.hpp"

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::config {

/// Checks of a Rule: paths with commas that are not longer than a system takes; the same where a
/// share is refused; a share or such paths; the directory of a run; its name.
void check_paths(std::string const& text);
void check_files(std::string const& text);
void check_files_or_share(std::string const& text);
void check_run_directory(std::string const& text);
void check_run_name(std::string const& text);
void check_steps(std::string const& text);         ///< that profile.steps may name
void check_milestones(std::string const& text);    ///< of schedule.milestones
void check_pattern(std::string const& text);       ///< of prune.pattern
void check_copy_interval(std::string const& text); ///< of fault-tolerance.memory-copy-every
void check_prune_target(std::string const& text);
void check_hidden(std::string const& text); ///< of distill.hidden
void check_groups(std::string const& text); ///< of optimizer.groups

/// What a key accepts, besides its type.
struct Rule {
    double minimum = std::numeric_limits<double>::lowest();
    double maximum = std::numeric_limits<double>::max();
    std::vector<std::string> choices{}; ///< for texts; any when empty
    AtResume at_resume = AtResume::free;
    bool of_buckets = false; ///< may change at a resume where sums have a fixed order anyway
    void (*check)(std::string const&) = nullptr; ///< of a text; throws what was expected, as a text
    Named names = Named::nothing;
    std::vector<Need> needs{}; ///< all of them

    Rule naming(Named what) && {
        names = what;
        return std::move(*this);
    }
    Rule with(Need need) && {
        needs.push_back(need);
        return std::move(*this);
    }
};

inline Rule at_least(double minimum, AtResume at_resume = AtResume::free) {
    return {.minimum = minimum, .at_resume = at_resume};
}

inline Rule between(double minimum, double maximum, AtResume at_resume = AtResume::free) {
    return {.minimum = minimum, .maximum = maximum, .at_resume = at_resume};
}

inline Rule one_of(std::vector<std::string> choices, AtResume at_resume = AtResume::free) {
    return {.choices = std::move(choices), .at_resume = at_resume};
}

inline Rule any(AtResume at_resume = AtResume::free) {
    return {.at_resume = at_resume};
}

/// Megabytes of a bucket: fixed at a resume only where sums depend on how buckets are cut.
inline Rule buckets() {
    return {.minimum = 0.016, .maximum = 4096, .at_resume = AtResume::forced, .of_buckets = true};
}

inline Rule such_as(void (*check)(std::string const&), AtResume at_resume = AtResume::free) {
    return {.at_resume = at_resume, .check = check};
}

} // namespace lockstep::config

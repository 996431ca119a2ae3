#include "batches/target_normalisation.hpp"

#include "base/text.hpp"
#include "batches/workload.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

constexpr char const* on = "data.normalise-targets = true";

/// Throws  Error 65 for moments that nothing can be normalised by
TargetMoments usable(std::optional<TargetMoments> const& moments, std::string const& files) {
    auto const refuse = [&](std::string why, std::string next) {
        throw Error(ExitCode::data,
                    {concat(on, " with data.train = ", files), std::move(why), std::move(next)});
    };
    if (!moments) {
        refuse("a mean and a standard deviation need two samples or more, with one target of the "
               "same shape for each",
               "Name such a training set, or set data.normalise-targets = false");
    }
    auto const finite = [](double value) { return std::isfinite(value); };
    if (!std::ranges::all_of(moments->mean, finite) || !std::ranges::all_of(moments->std, finite)) {
        refuse("the mean of its targets is not finite, because some of them are NaN, infinite or "
               "too large",
               "Correct or remove these samples (lockstep data verify finds them)");
    }
    return *moments;
}

std::string scale_text(TargetMoments const& used) {
    return used.mean.size() == 1
               ? concat("the mean ", significant(used.mean.front(), 6),
                        " and the standard deviation ", significant(used.std.front(), 6))
               : std::string("the mean and standard deviation of each value");
}

/// Values that do not vary: they are only shifted.
std::vector<std::string> shift_constants(std::vector<double>& std) {
    std::vector<std::string> which;
    for (std::size_t i = 0; i < std.size(); ++i) {
        if (std[i] == 0) {
            std[i] = 1;
            which.push_back(std::to_string(i));
        }
    }
    return which;
}

} // namespace

void require_can_normalise_targets(config::Deck const& deck) {
    if (!deck.data.normalise_targets) {
        return;
    }
    auto const refuse = [](std::string const& with, std::string why, std::string next) {
        throw Error(ExitCode::usage,
                    {concat("data.normalise-targets cannot be combined with ", with),
                     std::move(why), std::move(next)});
    };
    if (deck.task.kind != "regression") {
        refuse(concat("task.kind = ", deck.task.kind),
               "only the real values of a regression have a mean and a standard deviation",
               "Set data.normalise-targets = false, or task.kind = regression");
    }
    if (deck.privacy.is_on()) {
        refuse("privacy.noise",
               "the mean and standard deviation of the targets, which are stored with the model, "
               "would tell of the samples without noise",
               "Set data.normalise-targets = false, and store targets that are scaled by values "
               "that anyone may know");
    }
}

void normalise_targets(config::Deck const& deck, data::Facts const& known, std::string const& whose,
                       Workload& work) {
    auto& facts = work.facts;
    facts.target_mean.clear();
    facts.target_std.clear();
    if (!deck.data.normalise_targets) {
        if (!known.target_mean.empty()) {
            work.remarks.push_back(
                concat("warning: the targets of ", whose,
                       " were normalised, but those of this run "
                       "are not: the model's first outputs are in other units. Set ",
                       on));
        }
        return;
    }
    // Who only looks at samples, for the ranges of their values, has no targets of its own.
    bool const known_fit =
        !known.target_mean.empty() &&
        (!work.target_moments || known.target_mean.size() == work.target_moments->mean.size());
    auto used = known_fit ? TargetMoments{known.target_mean, known.target_std}
                          : usable(work.target_moments, deck.data.train);
    auto const constant = shift_constants(used.std);
    work.remarks.push_back(concat("targets are normalised by ", scale_text(used), " of ",
                                  known_fit ? whose : concat("data.train = ", deck.data.train),
                                  "; the loss is that of normalised targets, metrics and "
                                  "predictions are in the targets' own units"));
    if (!constant.empty()) {
        work.remarks.push_back(
            concat("warning: ",
                   constant.size() == used.std.size()
                       ? std::string("the targets do")
                       : concat("of the targets, value ", joined(constant, ", "), " does"),
                   " not vary in the training set, and are only shifted by "
                   "their mean"));
    }
    facts.target_mean = used.mean;
    facts.target_std = used.std;
    work.samples.target_mean = std::move(used.mean);
    work.samples.target_std = std::move(used.std);
}

} // namespace lockstep::train

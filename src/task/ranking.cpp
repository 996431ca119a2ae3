#include "ranking.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::task {

namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

double ratio(double part, double whole) {
    return whole > 0 ? part / whole : undefined;
}

/// A metric of each class, and the mean over those that have it.
class OverClasses {
  public:
    OverClasses(Metrics& metrics, std::string name) : metrics_(metrics), name_(std::move(name)) {}

    void add(std::string const& name, double value, bool by_name) {
        sum_ += value;
        ++classes_;
        if (by_name) {
            metrics_[concat(name_, ".", name)] = value;
        }
    }
    void close(double otherwise) {
        metrics_[name_] = classes_ == 0 ? otherwise : sum_ / static_cast<double>(classes_);
    }

  private:
    Metrics& metrics_;
    std::string name_;
    double sum_ = 0;
    std::int64_t classes_ = 0;
};

} // namespace

Ranking ranking_of(std::vector<Scored> samples) {
    if (std::ranges::any_of(samples, [](Scored each) { return std::isnan(each.score); })) {
        return {undefined, undefined};
    }
    std::ranges::sort(samples, std::ranges::greater{}, &Scored::score);
    auto const positives = std::ranges::count(samples, true, &Scored::positive);
    auto const negatives = std::ssize(samples) - positives;
    double won_twice = 0; // whole numbers: exact up to 2^53
    double precision = 0; // times positives
    std::int64_t found = 0;
    std::int64_t passed = 0;
    for (std::size_t at = 0; at < samples.size();) { // samples of one score are one threshold
        auto const score = samples[at].score;
        std::int64_t right = 0;
        std::int64_t wrong = 0;
        for (; at < samples.size() && samples[at].score == score; ++at) {
            ++(samples[at].positive ? right : wrong);
        }
        won_twice += static_cast<double>(right) *
                     static_cast<double>(2 * (negatives - passed - wrong) + wrong);
        found += right;
        passed += wrong;
        precision += static_cast<double>(right) * static_cast<double>(found) /
                     static_cast<double>(found + passed);
    }
    auto const all = static_cast<double>(positives);
    return {ratio(won_twice, 2 * all * static_cast<double>(negatives)), ratio(precision, all)};
}

void add_rankings(Metrics& metrics, AskedRankings asked, std::vector<std::string> const& classes,
                  std::function<std::vector<Scored>(std::size_t)> const& of_class) {
    OverClasses auroc(metrics, "auroc");
    OverClasses precision(metrics, "average-precision");
    for (std::size_t c = 0; c < classes.size(); ++c) {
        auto samples = of_class(c);
        auto const positives = std::ranges::count(samples, true, &Scored::positive);
        bool const all = positives == std::ssize(samples);
        auto const ranking = ranking_of(std::move(samples));
        if (asked.auroc && positives > 0 && !all) {
            auroc.add(classes[c], ranking.auroc, classes.size() > 1);
        }
        if (asked.average_precision && positives > 0) {
            precision.add(classes[c], ranking.average_precision, classes.size() > 1);
        }
    }
    if (asked.auroc) {
        auroc.close(0.5);
    }
    if (asked.average_precision) {
        precision.close(0);
    }
}

} // namespace lockstep::task

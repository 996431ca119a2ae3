#include "search/importance.hpp"

#include "search/forest.hpp"

#include <cmath>
#include <cstddef>

namespace lockstep::search {

std::vector<double> importance_of_keys(Study const& study) {
    auto const& dimensions = study.space().dimensions();
    std::vector<std::vector<double>> rows;
    std::vector<double> targets;
    for (auto const& trial : study.trials()) {
        if (trial.newest() == nullptr || std::isinf(study.losses(*trial.newest()).front())) {
            continue;
        }
        auto row = trial.point;
        for (std::size_t at = 0; at < row.size(); ++at) { // what does not apply has its own place
            row[at] = trial.values.contains(dimensions[at].key) ? row[at] : -1;
        }
        row.push_back(trial.newest()->share); // which explains a part, too
        rows.push_back(std::move(row));
        targets.push_back(study.losses(*trial.newest()).front());
    }
    auto importance = permutation_importance(rows, targets);
    importance.resize(importance.empty() ? 0 : dimensions.size());
    return importance;
}

} // namespace lockstep::search

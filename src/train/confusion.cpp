#include "confusion.hpp"

namespace lockstep::train {

Confusion confusion_of(Evaluation const& evaluation, std::vector<std::string> names) {
    if (evaluation.confusion.empty()) {
        return {};
    }
    while (names.size() * names.size() < evaluation.confusion.size()) {
        names.push_back(std::to_string(names.size()));
    }
    return {std::move(names), evaluation.confusion};
}

} // namespace lockstep::train

#include "train/not_finite.hpp"

#include "base/text.hpp"

#include <cmath>
#include <vector>

namespace lockstep::train {

std::string not_finite_text(Measured const& measured, std::string const& of) {
    if (!std::isfinite(measured.loss)) {
        return concat("the loss", of,
                      " is not finite: a sample of that set or an output of the "
                      "model is not finite");
    }
    std::vector<std::string> names;
    for (auto const& [name, value] : measured.metrics) {
        bool const of_all = name.find('.') == std::string::npos; // else of one class
        if (of_all && !std::isfinite(value)) {
            names.push_back(name);
        }
    }
    if (names.empty()) {
        return "";
    }
    return concat("the ", measured.set, " set gives no finite ", list_text(names, "or"),
                  ": its samples do not suffice to compute ", names.size() == 1 ? "it" : "them");
}

} // namespace lockstep::train

#include "check_report.hpp"

#include "base/escaped.hpp"
#include "base/text.hpp"
#include "monitor/terminal.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>

namespace lockstep::measure {

namespace {

/// A terminal's colours of their names.
std::string painted(Colour colour, bool colourful) {
    auto const name = name_of(colour);
    auto const padded = name + std::string(8 - name.size(), ' ');
    int const code = colour == Colour::green ? 32 : colour == Colour::yellow ? 33 : 31;
    return colourful ? concat("\033[", code, "m", padded, "\033[0m") : padded;
}

} // namespace

CheckReport::CheckReport(bool json, bool speaks)
    : json_(json), speaks_(speaks), colourful_(monitor::colours_welcome()) {}

void CheckReport::add(Finding const& finding) {
    worst_ = std::max(worst_, finding.colour);
    ++counts_[static_cast<std::size_t>(finding.colour)];
    if (!speaks_) {
        return;
    }
    if (json_) {
        nlohmann::ordered_json const line{{"colour", name_of(finding.colour)},
                                          {"topic", finding.topic},
                                          {"what", finding.what},
                                          {"remedy", finding.remedy}};
        std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                  << std::endl;
        return;
    }
    write_obeyed(std::cout, painted(finding.colour, colourful_));
    std::cout << std::left << std::setw(14) << finding.topic << finding.what << std::endl;
    if (!finding.remedy.empty()) {
        std::cout << std::string(22, ' ') << "-> " << finding.remedy << std::endl;
    }
}

void CheckReport::add(std::vector<Finding> const& findings) {
    for (auto const& finding : findings) {
        add(finding);
    }
}

void CheckReport::green(std::string topic, std::string what) {
    add({Colour::green, std::move(topic), std::move(what), {}});
}

void CheckReport::print_summary() const {
    if (speaks_ && !json_) {
        std::cout << (worst_ == Colour::red ? "not ready: " : "ready: ") << counts_[0] << " green, "
                  << counts_[1] << " yellow, " << counts_[2] << " red" << std::endl;
    }
}

} // namespace lockstep::measure

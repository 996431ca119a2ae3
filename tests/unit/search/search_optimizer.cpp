// Drives a strategy over standard input and output, one line a trial, without files: prints the
// values of a trial as JSON, reads its losses. Arguments: KEY=VALUE as in a SPACE file.

#include "search/study.hpp"

#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
    lockstep::search::Identity identity;
    for (int at = 1; at < argc; ++at) {
        std::string const word = argv[at];
        auto const equals = word.find('=');
        identity.space[word.substr(0, equals)] = word.substr(equals + 1);
    }
    lockstep::search::Study study(std::move(identity), nullptr);
    while (auto const job = study.next()) {
        std::cout << nlohmann::json(study.trials()[static_cast<std::size_t>(job->trial)].values)
                  << std::endl;
        std::string line;
        std::getline(std::cin, line);
        std::istringstream losses(line);
        lockstep::search::Outcome outcome{.trial = job->trial};
        for (auto const& goal : study.settings().goals) {
            losses >> outcome.metrics[goal.metric];
        }
        study.tell(outcome);
    }
}

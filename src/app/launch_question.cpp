#include "launch_question.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/number.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/monitor/terminal.hpp"

#include <csignal>
#include <iostream>
#include <unistd.h>

namespace lockstep::app {

namespace {

extern "C" void only_wake(int) {}

/// While it lives, an interrupt ends a read from the terminal instead of the program.
class InterruptedReads {
  public:
    InterruptedReads() {
        struct sigaction action {};
        action.sa_handler = only_wake; // no SA_RESTART
        sigemptyset(&action.sa_mask);
        ::sigaction(SIGINT, &action, &before_);
    }
    ~InterruptedReads() { ::sigaction(SIGINT, &before_, nullptr); }
    InterruptedReads(InterruptedReads const&) = delete;
    InterruptedReads& operator=(InterruptedReads const&) = delete;

  private:
    struct sigaction before_ {};
};

[[noreturn]] void leave() {
    std::cout << std::endl;
    throw Error(ExitCode::usage, {"nothing was started", "it was left unanswered",
                                  "lockstep launch --yes DECK asks nothing"});
}

/// A line of the terminal, which gives whole lines.
std::string read_line() {
    InterruptedReads const interrupted;
    std::string line;
    for (char letter = 0; letter != '\n';) {
        auto const got = ::read(STDIN_FILENO, &letter, 1);
        if (got != 1) {
            leave();
        }
        line += letter;
    }
    return std::string(trimmed(line));
}

} // namespace

std::string ask(Question const& question) {
    monitor::Paint const paint(monitor::colours_welcome());
    while (true) {
        std::cout << paint(monitor::Colour::bold, question.text);
        if (!question.otherwise.empty()) {
            std::cout << " [" << question.otherwise << "]";
        }
        std::cout << ": " << std::flush;
        auto const line = read_line();
        try {
            return question.meaning(line.empty() ? question.otherwise : line);
        } catch (std::string const& expected) {
            std::cout << paint(monitor::Colour::yellow, concat("  Expected ", expected)) << "\n";
        } catch (Error const& error) {
            std::cout << paint(monitor::Colour::yellow, concat("  ", error.what())) << "\n";
        }
    }
}

std::function<std::string(std::string const&)> one_of(std::vector<std::string> words) {
    return [words = std::move(words)](std::string const& answer) {
        std::vector<std::string> meant;
        for (auto const& word : words) {
            if (word == answer) {
                return word;
            }
            if (!answer.empty() && word.starts_with(answer)) {
                meant.push_back(word);
            }
        }
        if (meant.size() != 1) {
            throw joined(words, ", ");
        }
        return meant.front();
    };
}

std::function<std::string(std::string const&)> from_to(std::int64_t least, std::int64_t most) {
    return [least, most](std::string const& answer) {
        auto const value = number_of<std::int64_t>(answer);
        if (!value || *value < least || *value > most) {
            throw concat("a whole number from ", least, " to ", most);
        }
        return answer;
    };
}

} // namespace lockstep::app

#include "question.hpp"

#include "base/escaped.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "monitor/terminal.hpp"

#include <csignal>
#include <iostream>
#include <poll.h>
#include <unistd.h>

namespace lockstep::launch {

namespace {

void only_wake(int) {}

/// While it exists, an interrupt ends `wait` instead of the program; one that comes before is kept.
class Interrupts {
  public:
    Interrupts() {
        sigset_t own;
        sigemptyset(&own);
        sigaddset(&own, SIGINT);
        ::pthread_sigmask(SIG_BLOCK, &own, &mask_before_);
        struct sigaction action {};
        action.sa_handler = only_wake;
        sigemptyset(&action.sa_mask);
        ::sigaction(SIGINT, &action, &before_);
    }
    ~Interrupts() {
        ::sigaction(SIGINT, &before_, nullptr);
        ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    }
    Interrupts(Interrupts const&) = delete;
    Interrupts& operator=(Interrupts const&) = delete;

    /// For something to read; false at an interrupt.
    bool wait() const {
        auto open = mask_before_;
        sigdelset(&open, SIGINT);
        pollfd input{STDIN_FILENO, POLLIN, 0};
        return ::ppoll(&input, 1, nullptr, &open) == 1;
    }

  private:
    struct sigaction before_ {};
    sigset_t mask_before_{};
};

[[noreturn]] void leave() {
    std::cout << std::endl;
    throw Error(ExitCode::usage, {"nothing was started", "a question was left unanswered",
                                  "To start without questions, use lockstep launch --yes DECK"});
}

/// A line of the terminal, which gives whole lines.
std::string read_line(Interrupts const& interrupts) {
    std::string line;
    for (char letter = 0; letter != '\n'; line += letter) {
        if (!interrupts.wait() || ::read(STDIN_FILENO, &letter, 1) != 1) {
            leave();
        }
    }
    return std::string(trimmed(line));
}

} // namespace

std::string ask(Question const& question) {
    monitor::Paint const paint(monitor::colours_welcome());
    Interrupts const interrupts; // from before the question can be read
    while (true) {
        write_obeyed(std::cout, paint(monitor::Style::bold, question.text));
        if (!question.otherwise.empty()) {
            std::cout << " [" << question.otherwise << "]";
        }
        std::cout << ": " << std::flush;
        auto const line = read_line(interrupts);
        try {
            return question.meaning(line.empty() ? question.otherwise : line);
        } catch (std::string const& expected) {
            write_obeyed(std::cout,
                         paint(monitor::Style::yellow, concat("  Expected ", expected)) + "\n");
        } catch (Error const& error) {
            write_obeyed(std::cout,
                         paint(monitor::Style::yellow, concat("  ", error.what())) + "\n");
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
            throw concat("one of ", joined(words, ", "));
        }
        return meant.front();
    };
}

std::function<std::string(std::string const&)> from_to(std::int64_t min, std::int64_t max) {
    return [min, max](std::string const& answer) {
        auto const value = number_of<std::int64_t>(answer);
        if (!value || *value < min || *value > max) {
            throw concat("a whole number from ", min, " to ", max);
        }
        return answer;
    };
}

} // namespace lockstep::launch

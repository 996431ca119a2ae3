#include "listener.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::launch {

namespace {

constexpr std::size_t longest_line = 4096;

/// The word behind `mark` in a line, without the full stop of a sentence; empty where it is not
/// there.
std::string word_after(std::string_view line, std::string_view mark) {
    auto const at = line.find(mark);
    if (at == std::string_view::npos) {
        return "";
    }
    auto rest = line.substr(at + mark.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    auto word = std::string(rest.substr(0, rest.find_first_of(" \t")));
    while (!word.empty() && (word.back() == '.' || word.back() == ':' || word.back() == ',')) {
        word.pop_back();
    }
    return word;
}

bool says(std::string_view line, std::string_view phrase) {
    return line.find(phrase) != std::string_view::npos;
}

} // namespace

void LaunchListener::hear(std::string_view text) {
    for (char const letter : text) {
        if (letter == '\n') {
            hear_line(line_);
            line_.clear();
        } else if (line_.size() < longest_line) {
            line_.push_back(letter);
        }
    }
}

/// What Open MPI 4 and Slurm write, as their sources have it.
void LaunchListener::hear_line(std::string_view line) {
    if (line.starts_with("lockstep: root cause: ")) {
        told_ = line;
    } else if (line.starts_with("lockstep: the run continues at step ")) {
        continues_at_ = number_of<std::int64_t>(word_after(line, "at step ")).value_or(-1);
    } else if (says(line, "has lost communication with a remote daemon")) {
        daemon_lost_ = true;
    } else if (daemon_lost_ && says(line, "Remote daemon")) {
        daemon_lost_ = false;
        host_lost(word_after(line, " on node "), "mpirun has lost its daemon on that host");
    } else if (says(line, "noticed that process rank ")) {
        rank_lost(word_after(line, "process rank "), word_after(line, " on node "),
                  concat("its process ended on signal ", word_after(line, " signal ")));
    } else if (says(line, "Process name: [[")) {
        exited_ = word_after(line, "],");
        exited_ = exited_.substr(0, exited_.find(']'));
    } else if (!exited_.empty() && says(line, "Exit code:")) {
        rank_lost(std::exchange(exited_, ""), "",
                  concat("its process exited with code ", word_after(line, "Exit code:")));
    } else if (says(line, "srun: error: Node failure on ")) {
        host_lost(word_after(line, "Node failure on "), "Slurm says that the node has failed");
    } else if (line.starts_with("srun: error: ") && says(line, ": task ") &&
               (says(line, ": Killed") || says(line, "fault") || says(line, "Aborted"))) {
        rank_lost(
            word_after(line, ": task "), word_after(line, "srun: error: "),
            concat("its process ended: ", std::string(trimmed(line.substr(line.rfind(':') + 1)))));
    }
}

void LaunchListener::rank_lost(std::string const& rank, std::string const& named,
                               std::string const& why) {
    if (!verdict_) {
        auto const host = named.empty() ? host_of_(number_of<int>(rank).value_or(0)) : named;
        verdict_ = {concat("rank ", rank, host.empty() ? "" : concat(" (", host, ")")),
                    host,
                    false,
                    {why, "it was killed, crashed or ended with an error",
                     "Look at that host, and at the last lines that this rank has printed"}};
    }
}

void LaunchListener::host_lost(std::string const& host, std::string const& why) {
    if (!verdict_ || !verdict_->whole_host) {
        verdict_ = {concat("all ranks of ", host),
                    host,
                    true,
                    {why, "the host is off or cut off from the network, or its daemon was killed",
                     "Look at that host and at its network"}};
    }
}

} // namespace lockstep::launch

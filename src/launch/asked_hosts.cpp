#include "asked_hosts.hpp"

#include "base/child.hpp"
#include "base/environment.hpp"
#include "base/host_facts.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <future>
#include <optional>

#include "job_script.hpp"

namespace lockstep::launch {

namespace {

constexpr double answers_within_s = 10;
constexpr double silent_answers_within_s = 2; ///< after ten seconds in which no rank heard it
constexpr std::size_t peers = 2;

/// What runs a command line on a host: a job step, or the agent that mpirun uses.
std::vector<std::string> words_there(std::string const& host, std::string const& line) {
    if (is_here(host)) {
        return {"sh", "-c", line};
    }
    if (!environment_text("SLURM_JOB_ID").empty()) {
        return {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--mpi=none",
                "-w",   host,        "sh",        "-c",         line};
    }
    auto agent = environment_text("OMPI_MCA_plm_rsh_agent");
    if (agent.empty()) {
        agent = "ssh -o BatchMode=yes -o ConnectTimeout=5";
    }
    auto words = split(agent, ' ');
    words.insert(words.end(), {host, line});
    return words;
}

/// Two others that it should reach.
std::string peers_of(std::vector<Host> const& hosts, std::size_t own, std::string const& silent) {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < hosts.size() && names.size() < peers; ++i) {
        auto const& name = hosts[(own + i) % hosts.size()].name;
        if (!name.empty() && name != "localhost" && !is_same_host(name, silent)) {
            names.push_back(name);
        }
    }
    return joined(names, ",");
}

std::string line_for(std::vector<Host> const& hosts, std::size_t own,
                     HostQuestion const& question) {
    std::vector<std::string> words{question.program, "probe", question.directory};
    std::vector<std::string> processes;
    for (auto const& [host, ranks] : question.ranks) {
        auto const& name = hosts[own].name;
        if (is_same_host(host, is_here(name) ? own_host() : name)) {
            for (int const each : ranks) {
                processes.push_back(std::to_string(each));
            }
        }
    }
    if (!processes.empty()) {
        words.insert(words.end(), {"--end", joined(processes, ","), "--launch", question.launch});
    }
    if (auto const names = peers_of(hosts, own, question.silent); !names.empty()) {
        words.insert(words.end(), {"--reach", names});
    }
    return shell_line(words) + " || true";
}

HostAnswer answer_of(Host const& host, std::optional<std::string> const& text) {
    HostAnswer answer{.host = host, .answers = text || is_here(host.name)};
    for (auto const& line : split(text.value_or(""), '\n')) {
        for (std::string const front : {"lockstep probe: wrong: ", "lockstep probe: unfit: "}) {
            if (line.starts_with(front) && answer.fault.empty()) {
                answer.fault = line.substr(front.size());
                answer.certain = front.find("wrong") != std::string::npos;
            }
        }
    }
    return answer;
}

} // namespace

bool is_here(std::string const& host) {
    return host.empty() || host == "localhost" || is_same_host(host, own_host());
}

std::vector<HostAnswer> ask(std::vector<Host> const& hosts, HostQuestion const& question) {
    std::vector<std::future<std::optional<std::string>>> texts;
    texts.reserve(hosts.size());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        bool const silent = is_same_host(hosts[i].name, question.silent);
        texts.push_back(
            std::async(std::launch::async, [name = hosts[i].name,
                                            line = line_for(hosts, i, question), silent] {
                bool const there =
                    !silent || output_of(words_there(name, "true"), silent_answers_within_s);
                return there ? output_of(words_there(name, line), answers_within_s) : std::nullopt;
            }));
    }
    std::vector<HostAnswer> answers;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        answers.push_back(answer_of(hosts[i], texts[i].get()));
    }
    return answers;
}

std::vector<Host> answering(std::vector<HostAnswer> const& answers) {
    std::vector<Host> hosts;
    for (auto const& answer : answers) {
        if (answer.answers) {
            hosts.push_back(answer.host);
        }
    }
    return hosts;
}

} // namespace lockstep::launch

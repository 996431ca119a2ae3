#include "job_hosts.hpp"

#include "base/batch_job.hpp"
#include "base/environment.hpp"
#include "base/notice.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "monitor/retired_host.hpp"

#include <algorithm>
#include <filesystem>

namespace lockstep::launch {

namespace {

/// Where and how a rank or a host was lost, in one line.
std::string loss_text(AttemptEnd const& end, std::string const& host) {
    if (host_named_in(end.told) == host) {
        auto const text = end.told.substr(end.told.find("root cause: ") + 12);
        auto const place = text.find(": ");
        return place == std::string::npos ? text : text.substr(0, text.find(": ", place + 2));
    }
    return end.verdict ? concat(end.verdict->who, ": ", end.verdict->text.what) : "";
}

bool tells_silence(std::string const& told) {
    return told.find("has sent nothing for") != std::string::npos &&
           told.find("can be reached") == std::string::npos;
}

} // namespace

JobHosts::JobHosts(LaunchPlan const& plan, Watcher const& watcher)
    : plan_(plan), all_(plan.hosts), retired_(watcher.retired(batch_job(0).id)) {
    all_.insert(all_.end(), plan.spares.begin(), plan.spares.end());
    for (auto const& name : retired_) {
        notice(concat("launch: ", name,
                      " is left out, as earlier in this job: history.jsonl says why"));
    }
    for (auto const& host : in_use()) {
        answers_.push_back({.host = host, .answers = true});
    }
    chosen_ = chosen_hosts(answers_, plan_.hosts, retired_);
    if (chosen_.empty()) {
        throw Error(ExitCode::unavailable,
                    {"no host is left to start on", "all were left out earlier in this job",
                     "Read history.jsonl for the reasons, and start a new job"});
    }
}

void JobHosts::ask_all(AttemptEnd const& end) {
    HostQuestion question{.program = plan_.program,
                          .directory = std::filesystem::absolute(plan_.directory).string(),
                          .launch = environment_text("LOCKSTEP_LAUNCH"),
                          .silent = tells_silence(end.told) ? host_named_in(end.told) : ""};
    for (auto const& each : end.ranks) {
        question.ranks[each.host].push_back(each.process);
    }
    trained_ = chosen_;
    answers_ = ask(in_use(), question);
    chosen_ = chosen_hosts(answers_, plan_.hosts, retired_);
}

std::vector<Host> JobHosts::answering() const {
    return launch::answering(answers_);
}

bool JobHosts::is_cut_off() const {
    return is_alone(answers_);
}

std::optional<LauncherVerdict> JobHosts::missed(AttemptEnd const& end) const {
    return missed_host(answers_, trained_, end.told, end.verdict && !end.verdict->host.empty());
}

void JobHosts::judge(AttemptEnd const& end, Road road, std::string const& blamed) {
    Suspicion suspicion;
    if (road == Road::loss && !blamed.empty()) {
        suspicion = {.host = blamed,
                     .why = loss_text(end, blamed),
                     .losses = losses_.add(blamed, end.record.step),
                     .certain = tells_wrong_result(end.told)};
    }
    for (auto const& bad : convicted(answers_, suspicion, plan_.min_hosts)) {
        retired_.push_back(bad.name);
        notice(
            concat("launch: ", bad.name, " is left out for the rest of the job: ", bad.evidence));
        if (!plan_.is_search) {
            note(bad);
        }
    }
    chosen_ = chosen_hosts(answers_, plan_.hosts, retired_);
}

std::vector<Host> JobHosts::in_use() const {
    auto hosts = all_;
    std::erase_if(hosts, [&](Host const& host) {
        return std::ranges::any_of(retired_,
                                   [&](auto const& name) { return is_named(host, name); });
    });
    return hosts;
}

void JobHosts::note(RetiredHost const& bad) const {
    try {
        monitor::record_retired(plan_.directory, bad.name, bad.evidence);
    } catch (Error const& error) {
        notice(concat("launch: only this launch remembers that: ", error.what()));
    }
}

} // namespace lockstep::launch

#include "federate/coordinator.hpp"

#include "base/inject.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "federate/change.hpp"
#include "federate/collected.hpp"
#include "federate/mean_change.hpp"
#include "federate/noise.hpp"
#include "federate/sample_counts.hpp"
#include "federate/scaffold.hpp"
#include "federate/server_step.hpp"
#include "federate/sound_charter.hpp"
#include "federate/spent.hpp"
#include "federate/unmasking.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::federate {

namespace {

/// What is promised as the sum of a round to which no site has contributed.
constexpr char const* sum_of_no_site = "of-no-site";

/// What a list of the coordinator is made of: the phase that sites answered in before.
char const* answered_before(std::string_view list) {
    return list == phase::roster    ? phase::announce
           : list == phase::sharers ? phase::shares
                                    : phase::update;
}

} // namespace

Coordinator::Coordinator(Federation const& federation, PrivateKey const& key)
    : federation_(federation), key_(key), admission_(federation, key) {
    if (key.signing_key().public_key() != federation.coordinator()) {
        throw Error(
            ExitCode::usage,
            {"the given key is not the key of the federation's coordinator",
             concat("the federation was started with the key ", hex_text(federation.coordinator())),
             "With --key, name the file that was given to lockstep federate init"});
    }
    if (federation.charter().is_private() && !key.knows(federation.charter().id)) {
        throw Error(ExitCode::usage,
                    {"the journal of the coordinator's key (KEY.journal) has no record of this "
                     "federation",
                     "it tells which noisy sums were published: without it, epsilon could become "
                     "too small, and two sums could have the same noise",
                     "Copy KEY.journal back from a backup. Without one, start a new federation"});
    }
    federation.know_list_of(key);
}

bool Coordinator::said(std::int64_t round, std::string const& phase) const {
    return federation_.has(federation_.binding(round, phase, coordinator_name));
}

Message Coordinator::message(std::int64_t round, std::string const& phase) const {
    return Message(federation_.binding(round, phase, coordinator_name));
}

void Coordinator::say(Message const& message) const {
    federation_.write(message, key_);
}

std::vector<std::string> Coordinator::sites_of(std::int64_t round, std::string const& phase) const {
    return lines_in(federation_.read_of_coordinator(round, phase).text("sites"));
}

/// For one sum in a round: the difference of two sums with the same noise would be without noise.
/// `sum`: a digest of what was added up.
Secret Coordinator::noise_key(std::int64_t round, std::string const& sum) const {
    if (federation_.charter().is_private()) {
        key_.promise(federation_.charter().id, "sum", sum, round);
    }
    return key_.secret().derived(concat("noise\n", federation_.charter().id, " ", round));
}

/// Each site is drawn by itself, by a secret key and the round: what the accountant assumes. Where
/// there is no noise, at least as many are drawn as a round needs.
void Coordinator::plan(std::int64_t round) const {
    auto const& charter = federation_.charter();
    std::vector<std::pair<double, std::string>> drawn;
    auto const accepted = admission_.remaining();
    for (auto const& [name, key] : accepted) {
        auto const use = concat("draw\n", charter.id, " ", round, " ", name);
        drawn.emplace_back(uniform_of(key_.secret().derived(use)), name);
    }
    std::ranges::sort(drawn);
    std::vector<std::string> sites;
    for (auto const& [number, name] : drawn) {
        bool const needed = !charter.is_private() && std::cmp_less(sites.size(), charter.min_sites);
        if (number < charter.participation || needed) {
            sites.push_back(name);
        }
    }
    std::ranges::sort(sites);
    auto plan = message(round, phase::plan);
    plan.add_text("sites", lines_of(sites));
    plan.add_text("accepted", std::to_string(accepted.size()));
    auto const first = federation_.model_before(round);
    require_fit_for_noise(charter, first);
    plan.add_text("model", first.digest());
    say(plan);
}

std::string Coordinator::fault_of(std::int64_t round, std::string const& phase,
                                  std::string const& site, Message const& message) const {
    auto const& charter = federation_.charter();
    if (phase == phase::announce) {
        auto const member = member_of(message);
        auto const is_usable = [&](PublicKey const& key) {
            return agreed_secret(key_.secret(), key, "try").has_value();
        };
        bool const fits = member && is_usable(member->share_key) && is_usable(member->mask_key);
        return fits ? "" : "the public keys or the number of samples in the message are not valid";
    }
    auto const sites = federation_.roster(round);
    if (phase == phase::shares) {
        auto const expected = 2 * sizeof(Digest) * sites.members.size();
        return message.octets("commitments").size() == expected
                   ? ""
                   : "the message does not have a commitment for each share";
    }
    auto const words = message.words("change");
    auto const values = federation_.first_model(round).values.size() * charter.vectors();
    if (charter.is_secure()) { // masked: nothing can be seen but its length
        return words.size() == values ? ""
                                      : concat("it has ", words.size(), " values, not ", values);
    }
    return fault_of_change(
        words, values,
        {sites.fixed_point(charter), sites.weight_of(*sites.find(site), charter), charter.clip});
}

/// Whether enough sites were drawn for a sum, by chance.
bool Coordinator::can_be_summed(std::int64_t round) const {
    return !federation_.charter().is_private() ||
           std::cmp_greater_equal(sites_of(round, phase::plan).size(),
                                  federation_.charter().min_answers());
}

/// The list of sites that the round needs next; null where it has all of them.
char const* Coordinator::next_list(std::int64_t round) const {
    return !said(round, phase::roster)                                         ? phase::roster
           : federation_.charter().is_secure() && !said(round, phase::sharers) ? phase::sharers
           : !said(round, phase::survivors)                                    ? phase::survivors
                                                                               : nullptr;
}

/// The coordinator's own files are read before the sites' messages, which would be refused with
/// them.
void Coordinator::require_own_files(std::int64_t round, std::string const& answered) const {
    try {
        for (char const* const own : {phase::plan, phase::roster, phase::sharers}) {
            if (said(round, own)) {
                static_cast<void>(federation_.read_of_coordinator(round, own));
            }
        }
        if (answered == phase::update) {
            static_cast<void>(federation_.first_model(round));
        }
    } catch (Error const& error) {
        if (error.code() != ExitCode::data) {
            throw;
        }
        throw Error(ExitCode::data, {error.text().what, error.text().why,
                                     "The coordinator has written this file: restore it from a "
                                     "backup of the federation's directory"});
    }
}

/// Writes the list `phase` of who has answered, unless it waits for more. Whether it did.
bool Coordinator::close_phase(std::int64_t round, std::string const& phase, Waiting waiting,
                              Progress& progress) const {
    auto const& charter = federation_.charter();
    std::string const answered = answered_before(phase);
    std::string const before = phase == phase::roster                            ? phase::plan
                               : phase == phase::sharers || !charter.is_secure() ? phase::roster
                                                                                 : phase::sharers;
    require_own_files(round, answered);
    auto const asked = sites_of(round, before);
    auto const collected = collect(federation_, round, answered, asked,
                                   [&](std::string const& site, Message const& message) {
                                       return fault_of(round, answered, site, message);
                                   });
    std::ranges::copy(collected.refused, std::back_inserter(progress.lines));
    auto const& awaited = collected.awaited;
    auto const min = charter.min_answers();
    if (!awaited.empty() && waiting == Waiting::for_all && !collected.is_hopeless(min)) {
        progress.waiting = awaited;
        return false;
    }
    if (collected.come() < min) {
        throw too_few(federation_, round, answered, collected, min);
    }
    auto const& out = collected.removed;
    auto list = message(round, phase);
    std::vector<std::string> names;
    Roster sites;
    std::vector<std::string> digests;
    for (auto const& [name, answer] : collected.messages) {
        names.push_back(name);
        digests.push_back(hex_text(answer.digest()));
        if (phase == phase::roster) {
            sites.members.push_back(*member_of(answer)); // fault_of has looked at it
        }
    }
    list.add_text("sites", lines_of(names));
    if (phase == phase::roster) {
        list.add_text("members", sites.text());
    }
    list.add_text("digests", lines_of(digests));
    say(list);
    progress.lines.push_back(
        concat("round ", round, ": ", answered, " messages from ", joined(names, ", "),
               awaited.empty() ? "" : concat("; none from ", joined(awaited, ", ")),
               out.empty() ? "" : concat("; removed: ", joined(out, ", "))));
    return true;
}

Progress Coordinator::advance(Waiting waiting) const {
    auto const& charter = federation_.charter();
    Progress progress;
    while (true) {
        auto const round = federation_.current_round();
        if (round > charter.rounds) {
            progress.finished = true;
            return progress;
        }
        if (!said(round, phase::plan)) {
            auto const next = spent(federation_, 1).published;
            if (charter.budget > 0 && next > charter.budget) {
                progress.lines.push_back(concat("stopped: round ", round,
                                                " would raise epsilon to ", next,
                                                ", beyond the budget of ", charter.budget));
                progress.finished = true;
                return progress;
            }
            auto const needed = std::max(charter.min_sites, std::int64_t{1});
            if (std::cmp_less(admission_.remaining().size(), needed)) {
                auto const removed = federation_.removed().size();
                progress.lines.push_back(concat(
                    "round ", round, " begins when ", needed,
                    needed == 1 ? " site is accepted" : " sites are accepted",
                    removed == 0   ? ""
                    : removed == 1 ? " (the removed site does not count)"
                                   : concat(" (the ", removed, " removed sites do not count)")));
                return progress;
            }
            plan(round);
        }
        if (!can_be_summed(round)) {
            publish_noise(round, progress);
            continue;
        }
        // One decision per call without waiting: who closes a phase has not seen the next one.
        auto const closed = waiting;
        waiting = Waiting::for_all;
        auto const* const list = next_list(round);
        if (list != nullptr ? !close_phase(round, list, closed, progress)
                            : !finish_round(round, progress)) {
            return progress;
        }
    }
}

bool Coordinator::finish_round(std::int64_t round, Progress& progress) const {
    auto const survivors = federation_.read_of_coordinator(round, phase::survivors);
    auto const counted = lines_in(survivors.text("sites"));
    auto const digests = lines_in(survivors.text("digests"));
    auto model = federation_.first_model(round);
    auto const& charter = federation_.charter();
    std::vector<std::uint32_t> sum(model.values.size() * charter.vectors(), 0);
    for (std::size_t i = 0; i < counted.size(); ++i) {
        auto const update = federation_.read_of_site(round, phase::update, counted[i]);
        if (hex_text(update.digest()) != digests.at(i)) {
            throw Error(
                ExitCode::data,
                {concat("the update from ", counted[i], " was refused"),
                 concat("this update differs from the update that was accepted in round ", round),
                 "Ask that site to send the accepted update again"});
        }
        auto const words = update.words("change");
        for (std::size_t at = 0; at < sum.size(); ++at) {
            sum[at] += words[at];
        }
    }
    if (charter.is_secure() && !unmask(round, sum, progress)) {
        return false;
    }
    auto const roster = federation_.roster(round);
    auto const change =
        mean_change(sum, roster, counted, charter, noise_key(round, hex_text(survivors.digest())));
    auto const values = model.values.size();
    apply_change(model, std::span(change).first(values), charter);
    if (charter.has_controls()) {
        move_control(model, std::span(change).subspan(values), sum_of_samples(roster.part(counted)),
                     samples_of_all(federation_, round));
    }
    write_result(round, model, counted);
    progress.lines.push_back(
        concat("round ", round, " is over: ", amount_of(counted.size(), "site"),
               " took part; the new model is ", federation_.global_file(round).string()));
    return true;
}

/// The result of a round whose draw is empty, or cannot be summed: a sum of 0, with noise. Whoever
/// sees the models must not learn that nobody was drawn, so it is a round like any other.
void Coordinator::publish_noise(std::int64_t round, Progress& progress) const {
    auto model = federation_.first_model(round);
    auto const& charter = federation_.charter();
    apply_change(model,
                 mean_of_noise(model.values.size(), charter, noise_key(round, sum_of_no_site)),
                 charter);
    write_result(round, model, {});
    auto const sites = sites_of(round, phase::plan).size();
    progress.lines.push_back(concat(
        "round ", round, " is over: ",
        sites == 0 ? std::string("no site was drawn")
                   : concat("secure aggregation needs ", federation_.charter().min_answers(),
                            " sites, but the number of sites drawn was ", sites),
        ", so only noise was added; the new model is ", federation_.global_file(round).string()));
}

bool Coordinator::unmask(std::int64_t round, std::vector<std::uint32_t>& sum,
                         Progress& progress) const {
    auto const answers =
        collect(federation_, round, phase::unmask, sites_of(round, phase::survivors),
                [](auto const&, auto const&) { return std::string(); });
    std::ranges::copy(answers.refused, std::back_inserter(progress.lines));
    auto const threshold = federation_.charter().threshold;
    if (answers.is_hopeless(threshold)) {
        throw too_few(federation_, round, phase::unmask, answers, threshold);
    }
    if (answers.come() < threshold ||
        !Unmasking(federation_, round, answers.messages).take_off(sum, progress.lines)) {
        progress.waiting = answers.awaited;
        return false;
    }
    return true;
}

void Coordinator::write_result(std::int64_t round, ModelVector const& model,
                               std::vector<std::string> const& counted,
                               std::string const& abandoned_sum) const {
    auto const path = federation_.global_file(round);
    inject_fault_in(0, "federate global", round, Names::whole);
    model.write(path, round);
    inject_fault_in(0, "federate global written", round, Names::whole);
    auto result = message(round, phase::result);
    result.add_text("counted", lines_of(counted));
    auto const before = federation_.expected_model(round);
    bool const abandoned = counted.empty() && model.has_digest(before);
    result.add_text("model", abandoned ? before : model.digest());
    if (!abandoned_sum.empty()) {
        result.add_text("sum", abandoned_sum);
    }
    auto const rounds = spent(federation_, abandoned && abandoned_sum.empty() ? 0 : 1);
    result.add_text("epsilon", federation_.charter().is_private()
                                   ? concat(rounds.published, " ", rounds.known)
                                   : std::string());
    say(result);
}

std::string Coordinator::abandon() const {
    auto const round = federation_.current_round();
    bool const all_ended = round > federation_.charter().rounds;
    if (all_ended || !said(round, phase::plan)) {
        throw Error(ExitCode::usage,
                    {"there is no round to abandon",
                     all_ended ? "all rounds have ended" : "the next round has not begun",
                     "Leave --abandon out"});
    }
    auto const& charter = federation_.charter();
    auto const promised = key_.promised(charter.id, "sum", round).value_or(no_sum);
    auto const sum = promised == no_sum ? std::string() : promised;
    if (!can_be_summed(round) && (sum.empty() || sum == sum_of_no_site)) {
        throw Error(ExitCode::usage, {concat("round ", round, " cannot be abandoned"),
                                      "this would show that too few sites were drawn, and the "
                                      "privacy guarantee must hide that",
                                      "Repeat the command without --abandon to end the round with "
                                      "a result that is only noise"});
    }
    auto const model = federation_.first_model(round);
    auto const path = federation_.global_file(round);
    if (sum.empty() && std::filesystem::exists(path) &&
        ModelVector::read(path).digest() != model.digest()) {
        throw Error(ExitCode::usage,
                    {concat("round ", round, " cannot be abandoned"),
                     concat("its result was already written to ", path.string()),
                     "Repeat the command without --abandon to end the round with this result"});
    }
    if (charter.is_private() && sum.empty()) {
        key_.promise(charter.id, "sum", no_sum, round);
    }
    write_result(round, model, {}, sum);
    return concat("round ", round, " is abandoned: the model stays as it is",
                  sum.empty() ? ""
                              : "; epsilon counts the round, because its noisy sum may be known");
}

} // namespace lockstep::federate

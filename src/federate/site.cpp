#include "federate/site.hpp"

#include "base/own_directory.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::federate {

Site::Site(Federation const& federation, PrivateKey const& key, std::filesystem::path local)
    : federation_(federation), key_(key), local_(std::move(local)),
      control_(federation, key.name(), local_) {
    if (key_.promised(federation_.charter().id, "coordinator")) {
        trust();
    }
}

/// From then on no other coordinator can speak in its name, and none can change the charter.
void Site::trust() const {
    auto const& id = federation_.charter().id;
    key_.promise(id, "coordinator", hex_text(federation_.coordinator()));
    key_.promise(id, "charter", hex_text(federation_.charter_digest()));
}

/// A journal that has lost what this key has answered would let it answer twice: two different
/// answers with the same masks reveal secrets. A site that has sent its card trusts a coordinator.
void Site::require_whole_journal() const {
    auto const cards = federation_.cards();
    auto const own = cards.find(key_.name());
    bool const has_joined = own != cards.end() && own->second == key_.signing_key().public_key();
    bool const is_lost = !std::filesystem::exists(key_.journal());
    if (is_lost || (has_joined && !key_.promised(federation_.charter().id, "coordinator"))) {
        throw Error(ExitCode::usage,
                    {concat("the journal of this site's key (", key_.journal().string(),
                            is_lost ? ") is missing" : ") does not know that this site has joined"),
                     "without the record of what this key has answered, it could answer the same "
                     "round in two ways, which would reveal secrets",
                     "Copy the journal back from where the key is from. If it is lost, join under "
                     "another name with a new key (--site NAME, --key FILE)"});
    }
}

Message Site::answer(std::int64_t round, std::string const& phase) const {
    return Message(federation_.binding(round, phase, key_.name()));
}

void Site::send(Message const& message) const {
    federation_.write(message, key_);
}

void Site::join() const {
    auto const cards = federation_.cards();
    auto const there = cards.find(key_.name());
    if (there != cards.end() && there->second != key_.signing_key().public_key()) {
        auto const file = federation_.file(federation_.binding(0, phase::card, key_.name()));
        throw Error(
            ExitCode::cannot_create,
            {concat("cannot join as ", key_.name()),
             concat("a site with another key has joined under this name (", file.string(), ")"),
             "Choose another name with --site, or name the key file of that site with "
             "--key"});
    }
    require_whole_journal();
    trust();
    auto const card = answer(0, phase::card);
    key_.promise(federation_.charter().id, "card", hex_text(key_.signing_key().public_key()));
    send(card);
}

bool Site::has_sent(std::int64_t round, std::string const& phase) const {
    auto const bound = federation_.binding(round, phase, key_.name());
    if (!federation_.has(bound)) {
        return false;
    }
    try {
        static_cast<void>(
            Message::read(federation_.file(bound), bound, key_.signing_key().public_key()));
        return true;
    } catch (Error const& error) {
        if (error.code() != ExitCode::data) {
            throw;
        }
        return false; // somebody has changed it: it is sent again
    }
}

void Site::promise(Message const& message) const {
    auto const& [federation, round, phase, sender, model] = message.binding();
    key_.promise(federation, phase, hex_text(message.digest()), round);
}

KeyShares Site::keys(std::int64_t round) const {
    return {federation_, key_, round};
}

Roster Site::roster(std::int64_t round) const {
    auto const message = federation_.read_of_coordinator(round, phase::roster);
    auto roster = Roster::of_text(message.text("members"));
    require_enough(round, roster.members.size());
    if (!key_.promised(message.binding().federation, phase::roster, round)) { // looked at once
        for (auto const& member : roster.members) {
            require_as_announced(round, member);
        }
    }
    promise(message);
    return roster;
}

void Site::require_enough(std::int64_t round, std::size_t sites) const {
    auto const needed = federation_.charter().min_answers();
    if (std::cmp_less(sites, needed)) {
        throw Error(ExitCode::data,
                    {concat("round ", round, " cannot be answered"),
                     concat("it has ", amount_of(sites, "site"), ", but needs at least ", needed),
                     "No secret was revealed. Ask the coordinator to abandon the round "
                     "(--abandon)"});
    }
}

/// That the coordinator's list says of a site what the site has announced, where that can be seen:
/// a coordinator with keys of its own in their place could take off masks. Without masks, only what
/// is said of this site counts.
void Site::require_as_announced(std::int64_t round, Member const& member) const {
    bool const is_own = member.name == key_.name();
    auto const bound = federation_.binding(round, phase::announce, member.name);
    std::optional<Member> announced;
    if ((is_own || federation_.charter().is_secure()) && federation_.has(bound)) {
        try {
            announced = member_of(federation_.read_of_site(round, phase::announce, member.name));
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                throw;
            } // anyone may have damaged it: it says nothing
        }
    }
    if (!announced && is_own) {
        auto const own = keys(round);
        announced = {member.name, exchange_key(own.secrets().share),
                     exchange_key(own.secrets().mask), member.samples};
    }
    if (announced && *announced != member) {
        throw Error(ExitCode::data,
                    {concat("the coordinator's list of the sites of round ", round, " was refused"),
                     concat("it names other keys, or another number of samples, for ", member.name,
                            " than ", federation_.file(bound).string()),
                     "Somebody may have exchanged the keys, which would reveal secrets. Ask the "
                     "coordinator to abandon the round (--abandon)"});
    }
}

/// What a site that a list leaves out is told.
std::string Site::left_out(std::int64_t round, char const* phase, char const* list,
                           char const* words) const {
    return !has_sent(round, phase)
               ? std::string(words)
               : concat(
                     federation_.file(federation_.binding(round, list, coordinator_name)).string(),
                     " does not name this site, although its message is in ",
                     federation_.file(federation_.binding(round, phase, key_.name())).string(),
                     ". It came after the list, or the coordinator has refused it or left it "
                     "out, so there is nothing to do");
}

std::vector<std::string> Site::listed(std::int64_t round, std::string const& phase) const {
    return listed_in(federation_.read_of_coordinator(round, phase));
}

std::vector<std::string> Site::listed_in(Message const& message) {
    auto names = lines_in(message.text("sites"));
    if (!std::ranges::is_sorted(names, std::ranges::less_equal{})) {
        throw Error(ExitCode::data,
                    {concat("the coordinator's list of sites in ", message.binding().phase,
                            ".h5 of round ", message.binding().round, " was refused"),
                     "the names are not in order, or a name occurs twice",
                     "Ask the coordinator to send the list again"});
    }
    return names;
}

Standing Site::proceed(std::optional<std::int64_t> samples) const {
    auto const& charter = federation_.charter();
    auto const round = federation_.current_round();
    federation_.know_list_of(key_);
    auto const accepted = federation_.accepted();
    auto const own = accepted.find(key_.name());
    auto const standing = [round](std::string words, Need need = Need::nothing) {
        return Standing{need, round, concat("round ", round, ": ", words)};
    };
    auto const said = [&](std::string const& phase) {
        return federation_.has(federation_.binding(round, phase, coordinator_name));
    };
    if (!key_.promised(charter.id, "coordinator")) {
        require_whole_journal();
        throw Error(ExitCode::data,
                    {concat("the federation in ", federation_.directory().string(),
                            " is not one that this site has joined"),
                     "this site has not run lockstep federate join for this federation, or the "
                     "charter has changed since then",
                     "Ask the coordinator for its fingerprint, then run lockstep federate join "
                     "with --coordinator FINGERPRINT"});
    }
    federation_.record_list(key_);
    if (own == accepted.end() || own->second != key_.signing_key().public_key()) {
        return standing(
            concat("the coordinator has not accepted this site yet; its fingerprint is ",
                   hex_text(key_.signing_key().public_key())));
    }
    if (round > charter.rounds) {
        return {Need::nothing, charter.rounds, "the federation has finished"};
    }
    if (!said(phase::plan)) {
        return standing("the coordinator has not begun the round");
    }
    bool const removed = contains(federation_.removed(), key_.name());
    if (!contains(listed(round, phase::plan), key_.name()) ||
        (removed && !said(phase::survivors))) { // a removed site can still help to unmask
        return standing(removed ? "the coordinator has removed this site, so there is nothing to do"
                                : "this site was not drawn, so there is nothing to do");
    }
    if (!said(phase::roster)) {
        if (has_sent(round, phase::announce)) {
            return standing("announced; waiting for the other sites");
        }
        if (!samples) {
            return standing("counting samples", Need::samples);
        }
        announce(round, *samples);
        return standing("announced; waiting for the other sites");
    }
    auto const sites = roster(round);
    if (sites.find(key_.name()) == nullptr) {
        return standing(
            left_out(round, phase::announce, phase::roster,
                     "this site did not announce itself in time, so there is nothing to do"));
    }
    if (charter.is_secure()) {
        bool const over = said(phase::sharers);
        if (over && !contains(listed(round, phase::sharers), key_.name())) {
            return standing(
                left_out(round, phase::shares, phase::sharers,
                         "this site did not send its shares in time, so there is nothing to do"));
        }
        if (!has_sent(round, phase::shares)) { // again, if somebody has changed them
            send_shares(round);
        }
        if (!over) {
            return standing("shares of keys sent; waiting for the other sites");
        }
    }
    if (!said(phase::survivors)) {
        if (has_sent(round, phase::update) || send_kept_update(round)) {
            return standing("update sent; waiting for the other sites");
        }
        return standing("training", Need::training);
    }
    if (!contains(listed(round, phase::survivors), key_.name())) {
        return standing(
            left_out(round, phase::update, phase::survivors,
                     "this site's update did not arrive in time, so it does not count"));
    }
    has_sent(round, phase::update) || send_kept_update(round);
    if (!charter.is_secure()) {
        return standing("update sent; waiting for the coordinator");
    }
    if (!has_sent(round, phase::unmask) || is_partial(round)) {
        send_unmasking(round);
    }
    return standing("sent what the coordinator needs to unmask the sum");
}

void Site::announce(std::int64_t round, std::int64_t samples) const {
    auto const own = keys(round);
    auto message = answer(round, phase::announce);
    message.add_octets("share_key", exchange_key(own.secrets().share));
    message.add_octets("mask_key", exchange_key(own.secrets().mask));
    message.add_text("samples", std::to_string(samples));
    send(message);
}

void Site::send_shares(std::int64_t round) const {
    auto message = answer(round, phase::shares);
    keys(round).deal(roster(round), message);
    send(message);
}

void Site::require_announced(std::int64_t round, std::int64_t samples) const {
    auto const announced = roster(round).find(key_.name())->samples; // proceed has found it there
    if (samples != announced) {
        throw Error(
            ExitCode::usage,
            {concat("site ", key_.name(), " announced ", count_text(announced, "training sample"),
                    " for round ", round),
             concat("these data and options give ", count_text(samples)),
             "Repeat the command with the data.train and data.validation of the announcement"});
    }
}

std::filesystem::path Site::run_directory(std::int64_t round) const {
    return local_ / round_name(round);
}

bool Site::send_kept_update(std::int64_t round) const {
    auto const kept = run_directory(round) / "update.h5";
    if (!std::filesystem::exists(kept)) {
        return false;
    }
    try {
        auto const message =
            Message::read(kept, federation_.binding(round, phase::update, key_.name()),
                          key_.signing_key().public_key());
        promise(message);
        send(message);
        return true;
    } catch (Error const& error) {
        if (error.code() != ExitCode::data || has_sent(round, phase::update)) {
            throw;
        }
        std::filesystem::remove(kept); // damaged: training again gives the same
        return false;
    }
}

std::filesystem::path Site::write_first(std::int64_t round) const {
    auto const file = run_directory(round) / "first.h5";
    make_own_directory(run_directory(round));
    federation_.first_model(round).write(file, round - 1);
    return file;
}

std::filesystem::path Site::write_correction(std::int64_t round) const {
    auto const correction = control_.correction(round);
    auto const file = run_directory(round) / "correction.h5";
    make_own_directory(run_directory(round));
    correction.write(file, round);
    return file;
}

std::string Site::send_update(std::int64_t round, ModelVector const& trained, double rates) const {
    auto const& charter = federation_.charter();
    auto const sites = roster(round);
    auto const& own = *sites.find(key_.name());
    ChangeForm const form{sites.fixed_point(charter), sites.weight_of(own, charter), charter.clip,
                          charter.is_private()};
    auto change = encoded_change(federation_.first_model(round), trained, form);
    bool const all_zero = std::ranges::all_of(change.words, [](auto word) { return word == 0; });
    if (charter.has_controls()) {
        auto const control = control_.keep_next(round, trained, rates, form);
        change.words.insert(change.words.end(), control.words.begin(), control.words.end());
        change.clipped += control.clipped;
    }
    if (charter.is_secure()) {
        auto const sharers = federation_.read_of_coordinator(round, phase::sharers);
        promise(sharers);
        auto const masked = sites.part(listed_in(sharers));
        require_enough(round, masked.size());
        add_masks(change.words, key_.name(), keys(round).secrets(), masked);
    }
    auto message = answer(round, phase::update);
    message.add_words("change", change.words);
    make_own_directory(run_directory(round));
    message.write(run_directory(round) / "update.h5", key_.signing_key());
    promise(message);
    send(message);
    auto words = concat("round ", round, ": update sent; ", count_text(own.samples, "sample"),
                        ", norm of the change ", change.norm);
    if (charter.clip > 0 && change.norm > charter.clip) {
        words += concat(", scaled to ", charter.clip);
    }
    if (all_zero && change.norm > 0) {
        words += concat("\nwarning: all changes are rounded to 0, because steps of ",
                        1 / form.fixed_point.scale, " are the finest that --range ", charter.range,
                        " allows");
    }
    return change.clipped == 0 ? words
                               : concat(words, "\nwarning: ", amount_of(change.clipped, "value"),
                                        " changed by more than ", charter.range,
                                        change.clipped == 1 ? " and was clipped (--range)"
                                                            : " and were clipped (--range)");
}

/// Whether shares are missing in what this site has sent: they may have arrived since.
bool Site::is_partial(std::int64_t round) const {
    auto const bound = federation_.binding(round, phase::unmask, key_.name());
    auto const sent =
        Message::read(federation_.file(bound), bound, key_.signing_key().public_key());
    return sent.names().size() < listed(round, phase::sharers).size();
}

void Site::send_unmasking(std::int64_t round) const {
    auto const sites = roster(round);
    auto const survivors = federation_.read_of_coordinator(round, phase::survivors);
    auto const counted = listed_in(survivors); // of what is promised below
    auto const shared = federation_.read_of_coordinator(round, phase::sharers);
    auto const sharers = listed_in(shared);
    if (!std::ranges::includes(sharers, counted)) {
        throw Error(ExitCode::data,
                    {concat("round ", round, " cannot be unmasked"),
                     "some sites of the round have not shared their keys",
                     "No secret was revealed. Ask the coordinator to abandon the round "
                     "(--abandon)"});
    }
    require_enough(round, counted.size());
    promise(shared);
    promise(survivors);
    auto const own = keys(round);
    auto message = answer(round, phase::unmask);
    for (auto const& from : sites.part(sharers)) {
        try {
            message.add_octets(concat("of/", from.name),
                               own.share_from(from, contains(counted, from.name)));
        } catch (Error const& error) {
            if (error.code() != ExitCode::data && error.code() != ExitCode::no_input) {
                throw;
            } // the shares of others may be enough
        }
    }
    send(message);
}

} // namespace lockstep::federate

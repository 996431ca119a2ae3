#include "federate/federation.hpp"

#include "base/file.hpp"
#include "base/inject.hpp"
#include "base/lock_holder.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "federate/roster.hpp"
#include "federate/shared_path.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "signature_block.hpp"

namespace lockstep::federate {

namespace {

std::map<std::string, PublicKey> keys_in(std::string const& text) {
    std::map<std::string, PublicKey> keys;
    for (auto const& line : split(text, '\n')) {
        auto const words = split(line, ' ');
        auto const key = words.size() == 2 ? fixed_octets<32>(words[1]) : std::nullopt;
        if (!key || !is_site_name(words[0])) {
            throw Error(ExitCode::data,
                        {"the list of accepted sites cannot be read",
                         concat("its line \"", line, "\" does not consist of a name and a key"),
                         "Ask the coordinator to send that file again"});
        }
        keys[words[0]] = *key;
    }
    return keys;
}

} // namespace

std::string round_name(std::int64_t round) {
    return concat("round-", zero_padded(round, 4));
}

FileLock sole_process(std::filesystem::path const& file, std::string const& who) {
    FileLock lock(file);
    if (lock.is_held_elsewhere()) {
        throw Error(ExitCode::cannot_create,
                    {concat("another process is running as ", who), lock_holder(file).text,
                     "Wait until that process has ended"});
    }
    return lock;
}

void require_site_name(std::string const& name) {
    if (!is_site_name(name)) {
        throw Error(ExitCode::usage, {concat("--site ", name), "this is not a valid site name",
                                      "Use 1 to 64 letters, digits, - or _, but not the "
                                      "reserved name \"coordinator\""});
    }
}

std::optional<Member> member_of(Message const& announced) {
    auto const key = [&](char const* name) {
        return fixed_octets<sizeof(PublicKey)>(hex_text(announced.octets(name)));
    };
    auto const share_key = key("share_key");
    auto const mask_key = key("mask_key");
    auto const samples = number_of<std::int64_t>(announced.text("samples"));
    constexpr std::int64_t max = 1000000000000;
    if (!share_key || !mask_key || !samples || *samples < 1 || *samples > max) {
        return std::nullopt;
    }
    return Member{announced.binding().sender, *share_key, *mask_key, *samples};
}

Federation Federation::found(std::filesystem::path const& directory, Charter const& charter,
                             ModelVector const& first, PrivateKey const& coordinator) {
    make_directories(shared_path(directory, "global/"));
    auto const path = directory / concat(phase::charter, ".h5");
    if (std::filesystem::exists(path)) {
        throw Error(ExitCode::cannot_create,
                    {concat(directory.string(), " already has a federation"),
                     "a directory can hold only one federation", "Name another directory"});
    }
    first.write(directory / "global" / concat(round_name(0), ".h5"), 0);
    Message message({charter.id, 0, phase::charter, coordinator_name, charter.model});
    message.add_text("charter", charter.text());
    message.add_text("first", first.digest());
    coordinator.record_newest(charter.id, "founded", 1);
    message.write(path, coordinator.signing_key());
    return Federation(directory);
}

Federation::Federation(std::filesystem::path directory) : directory_(std::move(directory)) {
    require_cryptography();
    auto const path = directory_ / concat(phase::charter, ".h5");
    if (!std::filesystem::exists(path)) {
        throw Error(ExitCode::no_input, {concat("no federation in ", directory_.string()),
                                         concat(path.filename().string(), " does not exist there"),
                                         "Name the directory that lockstep federate init made"});
    }
    auto const message =
        Message::read_of_unknown(path, {"", 0, phase::charter, coordinator_name, ""});
    charter_ = Charter::of_text(message.text("charter"));
    coordinator_ = message.signer();
    charter_digest_ = message.digest();
    first_digest_ = message.text("first");
    if (charter_.id != message.binding().federation || charter_.model != message.binding().model) {
        throw Error(ExitCode::data,
                    {concat(path.string(), " was refused"),
                     "the signature and the contents of this file belong to different federations",
                     "Ask the coordinator to send this file again"});
    }
}

Binding Federation::binding(std::int64_t round, std::string const& phase,
                            std::string const& sender) const {
    return {charter_.id, round, phase, sender, charter_.model};
}

std::filesystem::path Federation::file(Binding const& binding) const {
    bool const of_site = binding.sender != coordinator_name;
    auto const name = concat(of_site ? binding.sender : binding.phase, ".h5");
    std::filesystem::path place;
    if (binding.round == 0) {
        place = of_site ? "sites" : "";
    } else {
        place = std::filesystem::path("rounds") / zero_padded(binding.round, 4) /
                (of_site ? binding.phase : "");
    }
    return shared_path(directory_, place / name);
}

std::filesystem::path Federation::global_file(std::int64_t round) const {
    auto path = shared_path(directory_, concat("global/", round_name(round), ".h5"));
    require_no_link(path);
    return path;
}

bool Federation::has(Binding const& binding) const {
    return std::filesystem::exists(file(binding));
}

Message Federation::read_of_coordinator(std::int64_t round, std::string const& phase) const {
    auto const bound = binding(round, phase, coordinator_name);
    return Message::read(file(bound), bound, coordinator_);
}

Roster Federation::roster(std::int64_t round) const {
    return Roster::of_text(read_of_coordinator(round, phase::roster).text("members"));
}

Message Federation::read_of_site(std::int64_t round, std::string const& phase,
                                 std::string const& site) const {
    auto const bound = binding(round, phase, site);
    if (!std::filesystem::is_regular_file(file(bound))) { // the round continues without it
        throw Error(ExitCode::data,
                    {concat(file(bound).string(), " was refused"),
                     "a message must be a file, but this is a directory, a pipe or a device",
                     concat("Remove ", file(bound).string(), ", and ask ", site,
                            " to send its message again")});
    }
    auto const keys = accepted();
    auto const key = keys.find(site);
    if (key == keys.end()) {
        throw Error(ExitCode::data, {concat(file(bound).string(), " was refused"),
                                     concat("the coordinator has not accepted ", site),
                                     "Let the coordinator accept the site (--accept FINGERPRINT of "
                                     "lockstep federate round)"});
    }
    return Message::read(file(bound), bound, key->second);
}

void Federation::write(Message const& message, PrivateKey const& key) const {
    auto const& bound = message.binding();
    auto const path = file(bound);
    auto const signing = key.signing_key();
    if (std::filesystem::exists(path)) {
        try {
            if (Message::read(path, bound, signing.public_key()).digest() == message.digest()) {
                return;
            }
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                throw;
            } // a damaged copy is replaced
        }
    }
    make_directories(path.parent_path());
    inject_fault_in(0, concat("federate ", bound.phase), bound.round, Names::whole);
    message.write(path, signing);
    ++written_;
    inject_fault_in(0, concat("federate ", bound.phase, " written"), bound.round, Names::whole);
}

void Federation::know_list_of(PrivateKey const& key) const {
    list_version_ = std::max(list_version_, key.newest(charter_.id, phase::accepted));
}

void Federation::record_list(PrivateKey const& key) const {
    key.record_newest(charter_.id, phase::accepted, list_version_);
}

std::optional<Message> Federation::list() const {
    auto const bound = binding(0, phase::accepted, coordinator_name);
    if (!has(bound)) {
        return std::nullopt;
    }
    constexpr char const* part = "version"; // missing in files of an earlier version
    auto list = read_of_coordinator(0, phase::accepted);
    auto const version =
        contains(list.names(), part) ? number_of<std::int64_t>(list.text(part)).value_or(0) : 0;
    if (version < list_version_) {
        throw Error(
            ExitCode::data,
            {concat(file(bound).string(), " was refused"),
             concat("it is version ", version, " of the list of accepted sites, but version ",
                    list_version_, " was read before"),
             "An older list may name sites that were removed. Ask the coordinator to send "
             "the newest one. A coordinator who has lost it removes this file and accepts "
             "the sites again (--accept FINGERPRINT)"});
    }
    list_version_ = version;
    return list;
}

std::map<std::string, PublicKey> Federation::accepted() const {
    auto const newest = list();
    return newest ? keys_in(newest->text("sites")) : std::map<std::string, PublicKey>{};
}

std::vector<std::string> Federation::removed() const {
    constexpr char const* part = "removed"; // only where some are
    auto const newest = list();
    return newest && contains(newest->names(), part) ? lines_in(newest->text(part))
                                                     : std::vector<std::string>{};
}

std::map<std::string, PublicKey> Federation::cards() const {
    std::map<std::string, PublicKey> keys;
    auto const sites = shared_path(directory_, "sites/");
    if (!std::filesystem::is_directory(sites)) {
        return keys;
    }
    for (auto const& entry : std::filesystem::directory_iterator(sites)) {
        auto const name = entry.path().stem().string();
        if (entry.path().extension() != ".h5") {
            continue;
        }
        try {
            require_site_name(name);
            keys[name] =
                Message::read_of_unknown(entry.path(), binding(0, phase::card, name)).signer();
        } catch (Error const&) {
            continue; // no card: the site joins again
        }
    }
    return keys;
}

std::int64_t Federation::current_round() const {
    std::int64_t round = 1;
    while (round <= charter_.rounds && has(binding(round, phase::result, coordinator_name))) {
        ++round;
    }
    return round;
}

bool Federation::is_abandoned(std::int64_t round) const {
    auto const result = read_of_coordinator(round, phase::result);
    return result.text("counted").empty() && result.text("model") == expected_model(round);
}

bool Federation::counts_in_epsilon(std::int64_t round) const {
    return !is_abandoned(round) ||
           contains(read_of_coordinator(round, phase::result).names(), std::string("sum"));
}

std::string Federation::expected_model(std::int64_t round) const {
    return round == 1 ? first_digest_ : read_of_coordinator(round - 1, phase::result).text("model");
}

ModelVector Federation::model_before(std::int64_t round) const {
    auto const path = global_file(round - 1);
    auto model = ModelVector::read(path);
    if (!model.has_digest(expected_model(round))) {
        throw Error(ExitCode::data,
                    {concat(path.string(), " was refused"),
                     round == 1
                         ? std::string("the file is not the model that the federation began with")
                         : concat("the file is not the result of round ", round - 1),
                     "Copy the file back from a backup, or ask the coordinator to send it again"});
    }
    return model;
}

ModelVector Federation::first_model(std::int64_t round) const {
    auto model = model_before(round);
    if (!model.has_digest(read_of_coordinator(round, phase::plan).text("model"))) {
        throw Error(ExitCode::data, {concat("the plan of round ", round, " was refused"),
                                     concat("it names another model than the ",
                                            round == 1 ? std::string("charter")
                                                       : concat("result of round ", round - 1)),
                                     "Ask the coordinator to abandon the round (--abandon)"});
    }
    return model;
}

} // namespace lockstep::federate

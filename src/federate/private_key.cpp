#include "federate/private_key.hpp"

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/own_file.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::federate {

namespace {

constexpr char const* key_format = "lockstep federation key 1";

std::string key_text(std::string const& name, Secret const& secret) {
    return concat(key_format, "\n", name, "\n", hex_text(secret.bytes()), "\n");
}

/// After its journal: a kill in between leaves no key without one.
void make_key(std::filesystem::path const& file, std::string const& name, Secret const& secret) {
    if (auto const journal = file.string() + ".journal"; !std::filesystem::exists(journal)) {
        write_secret_text(journal, "");
    }
    write_secret_text(file, key_text(name, secret));
}

Error no_key(std::filesystem::path const& file) {
    return {ExitCode::data,
            {concat(file.string(), " is not a key of a federation"),
             "it is damaged, or another kind of file",
             "With --key, name a file that lockstep federate init or join made"}};
}

/// The coordinator's list in a file of a round, in the words of a message.
std::string sites_in(std::string const& phase) {
    return phase == "roster"    ? "the coordinator's list of the sites that take part"
           : phase == "sharers" ? "the coordinator's list of the sites that have shared their keys"
                                : "the coordinator's list of the sites whose updates count";
}

/// What a promise's line begins with; the digest follows.
std::string line_of(std::string const& federation, std::string const& what, std::int64_t round) {
    return concat(federation, " ", what, round > 0 ? concat("-of-round-", round) : "", " ");
}

/// The message where `what` differs from `recorded` in the key's journal.
ErrorText broken_promise(std::string const& what, std::int64_t round, std::string const& recorded,
                         std::string const& key, std::string const& journal) {
    if (what == "coordinator") {
        return {"the federation's charter.h5 is not signed by the coordinator that this site "
                "trusts",
                concat("its signature belongs to a different key than the coordinator's key that ",
                       journal, " has recorded"),
                "Somebody may have replaced charter.h5. Ask the coordinator to send the original "
                "file again"};
    }
    if (what == "charter") {
        return {"the federation's charter.h5 has changed since this site joined",
                concat("a site accepts only the charter that ", journal, " has recorded"),
                "Ask the coordinator to send the original file again"};
    }
    if (what == "card") {
        return {"this site has already joined the federation with another key",
                concat(key, " is not the key that ", journal, " has recorded"),
                concat("Copy the old key back from a backup to ", key,
                       ", or join under another name, with another --key FILE")};
    }
    if (what == "update") {
        return {concat("this site has already sent another update in round ", round),
                concat("the site's data or the run directory of this round has changed since ",
                       journal,
                       " recorded that update, and two different updates in one round could "
                       "reveal secrets"),
                "Restore the data and the run directory from a backup, and repeat the command, "
                "which then makes the first update again. Or ask the coordinator to abandon the "
                "round (--abandon)"};
    }
    if (what == "sum" && recorded == no_sum) {
        return {concat("round ", round, " was already abandoned"),
                concat(journal, " has recorded this, and epsilon does not count the round"),
                "End the round with --abandon again"};
    }
    if (what == "sum") {
        return {concat("round ", round, " was already ended with other updates"),
                concat(journal, " has recorded the sum to which the noise of this round was added, "
                                "and two sums with the same noise could reveal a site's update"),
                "Copy the federation's directory back from a backup that has the same survivors.h5 "
                "in this round. Without one, end the round with --abandon: epsilon then counts it, "
                "because the first sum may be known"};
    }
    return {concat(sites_in(what), " in round ", round, " has changed"),
            concat(journal, " has recorded another list, and to answer two lists could reveal "
                            "secrets"),
            concat("Ask the coordinator to send the first ", what,
                   ".h5 of this round again, or to abandon the round (--abandon)")};
}

} // namespace

void require_key_outside(std::filesystem::path const& key, std::filesystem::path const& directory) {
    auto const inside = std::filesystem::weakly_canonical(key).lexically_relative(
        std::filesystem::weakly_canonical(directory));
    if (!inside.empty() && *inside.begin() != "..") {
        throw Error(ExitCode::usage,
                    {concat("--key ", key.string(), " lies in ", directory.string()),
                     "all sites see that directory", "Name a file outside that directory"});
    }
}

PrivateKey PrivateKey::open_or_make(std::filesystem::path const& file, std::string const& name) {
    if (!std::filesystem::exists(file)) {
        make_key(file, name, Secret::random());
    }
    return open(file, name);
}

PrivateKey PrivateKey::simulated(std::filesystem::path const& file, std::string const& name,
                                 Secret const& secret) {
    if (!std::filesystem::exists(file)) {
        make_key(file, name, secret);
    }
    return open(file, name);
}

PrivateKey PrivateKey::open(std::filesystem::path const& file, std::string const& name) {
    auto const lines =
        split(read_secret_text(file, "whoever has a private key can act as its owner",
                               "With --key, name a file that lockstep federate init or join made"),
              '\n');
    auto const secret = lines.size() == 4 ? fixed_octets<Secret::size>(lines[2]) : std::nullopt;
    if (!secret || lines[0] != key_format) {
        throw no_key(file);
    }
    if (lines[1] != name) {
        throw Error(ExitCode::usage, {concat(file.string(), " is the wrong key"),
                                      concat("this key belongs to ", lines[1], ", but the key of ",
                                             name, " is needed"),
                                      concat("With --key, name the key file of ", name)});
    }
    return {file, name, Secret(*secret)};
}

/// The journal's lines that begin so.
std::vector<std::string> PrivateKey::promises(std::string const& begin) const {
    if (auto const why = distrust(journal()); !why.empty()) {
        throw Error(ExitCode::usage,
                    {concat("cannot rely on ", journal().string()), why,
                     "If nobody has changed it, make it your own and give it mode 0600 (chown, "
                     "chmod 600). Otherwise copy it back from a backup"});
    }
    auto lines = std::filesystem::exists(journal()) ? split(read_text(journal()), '\n')
                                                    : std::vector<std::string>{};
    std::erase_if(lines, [&](std::string const& line) { return !line.starts_with(begin); });
    return lines;
}

std::optional<std::string> PrivateKey::promised(std::string const& federation,
                                                std::string const& what, std::int64_t round) const {
    auto const begin = line_of(federation, what, round);
    auto const known = promises(begin);
    return known.empty() ? std::nullopt : std::optional(known.front().substr(begin.size()));
}

bool PrivateKey::knows(std::string const& federation) const {
    return !promises(federation + " ").empty();
}

void PrivateKey::promise(std::string const& federation, std::string const& what,
                         std::string const& digest, std::int64_t round) const {
    auto const known = promised(federation, what, round);
    if (!known) {
        append(line_of(federation, what, round) + digest);
    } else if (*known != digest) {
        throw Error(ExitCode::data,
                    broken_promise(what, round, *known, file_.string(), journal().string()));
    }
}

void PrivateKey::append(std::string const& line) const {
    if (!std::filesystem::exists(journal())) {
        write_secret_text(journal(), ""); // whatever the umask is, others cannot write to it
    }
    auto const file = File::append(journal());
    // A power failure may have left half a line.
    bool const whole = file.size() == 0 || read_text(journal()).ends_with('\n');
    file.append_text(concat(whole ? "" : "\n", line, "\n"));
    file.sync();
}

std::int64_t PrivateKey::newest(std::string const& federation, std::string const& what) const {
    auto const begin = concat(federation, " ", what, " ");
    std::int64_t newest = 0;
    for (auto const& line : promises(begin)) {
        newest = std::max(newest, number_of<std::int64_t>(line.substr(begin.size())).value_or(0));
    }
    return newest;
}

void PrivateKey::record_newest(std::string const& federation, std::string const& what,
                               std::int64_t number) const {
    if (number > newest(federation, what)) {
        append(concat(federation, " ", what, " ", number));
    }
}

} // namespace lockstep::federate

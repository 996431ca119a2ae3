#include "train/privacy_key.hpp"

#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <cstring>

namespace lockstep::train {

std::filesystem::path privacy_key_file(config::Deck const& deck,
                                       std::filesystem::path const& directory) {
    return deck.privacy.key.empty() ? directory / "privacy.key"
                                    : std::filesystem::path(deck.privacy.key);
}

void make_privacy_key(std::filesystem::path const& file) {
    federate::require_cryptography();
    write_secret_text(file, hex_text(federate::Secret::random().bytes()) + "\n");
}

federate::Secret read_privacy_key(comm::Communicator const& world, config::Deck const& deck,
                                  bool resumes) {
    std::string digits;
    comm::agree(world, "reading privacy.key", [&] {
        federate::require_cryptography();
        if (!world.is_root()) {
            return;
        }
        auto const file = privacy_key_file(deck, deck.run.directory);
        // A link that leads nowhere is not a missing file: its place may be a disk that is not
        // mounted.
        if (!resumes && !std::filesystem::exists(std::filesystem::symlink_status(file))) {
            make_privacy_key(file);
        }
        std::string const as_before =
            "Copy the run's key file back from a backup (the noise of the next steps is drawn from "
            "its key), or start over with --checkpoint.resume none";
        digits =
            trimmed(read_secret_text(file, "whoever has the key can remove the noise", as_before));
        if (!federate::fixed_octets<federate::Secret::size>(digits)) {
            throw Error(ExitCode::data, {concat(file.string(), " is not a key"),
                                         "a key consists of 64 hexadecimal digits (0-9 and a-f)",
                                         resumes ? as_before
                                                 : "Copy the key file back from a backup, or name "
                                                   "another file in privacy.key"});
        }
    });
    comm::broadcast_text(world, digits);
    return federate::Secret(*federate::fixed_octets<federate::Secret::size>(digits));
}

std::int64_t fingerprint(federate::Secret const& key) {
    std::int64_t number = 0;
    auto const own = key.derived("fingerprint of privacy.key");
    std::memcpy(&number, own.bytes().data(), sizeof number);
    return number;
}

federate::Secret secret_of_run(federate::Secret const& key, config::Deck const& deck,
                               RunContents const& contents) {
    auto use =
        concat("DP-SGD ", contents.data, " ", contents.model, " ", contents.teacher, " ",
               contents.initial_weights, "\n", joined(config::forbidden_changes({}, deck), "\n"));
    for (auto const& [what, hash] : contents.code) {
        use += concat("\n", what, " ", hash);
    }
    if (contents.content != 0) { // else of a run that an earlier version began
        use += concat("\ncontent ", contents.content);
    }
    if (depends_on_length(deck.schedule)) { // its rates depend on the length
        use += concat("\n", deck.train.epochs, " ", deck.train.steps, " ", deck.privacy.epsilon,
                      " ", deck.privacy.delta);
        if (deck.privacy.accountant != "rdp") { // the only one of earlier versions
            use += concat(" ", deck.privacy.accountant);
        }
    }
    return key.derived(use);
}

} // namespace lockstep::train

#include "model_files/same_code.hpp"

#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "nn/named_code.hpp"

#include <string_view>

namespace lockstep::train {

namespace {

constexpr std::string_view code_note = "hash of "; ///< of notes

std::string note_of(std::string const& key) {
    return concat(code_note, key);
}

std::string text_of(CodeHashes const& code) {
    std::vector<std::string> lines;
    for (auto const& [key, hash] : code) {
        lines.push_back(concat(key, ": ", hash));
    }
    return joined(lines, "; ");
}

} // namespace

CodeHashes same_code_hashes(comm::Communicator const& world, config::Deck const& deck) {
    CodeHashes code;
    comm::agree(world, "reading plug-ins", [&] { code = nn::code_hashes(deck); });
    auto const own = text_of(code);
    auto root = own;
    comm::broadcast_text(world, root);
    comm::agree(world, "comparing plug-ins", [&] {
        if (own != root) {
            throw Error(ExitCode::usage,
                        {"this rank's plug-ins or operator libraries differ from those of rank 0",
                         concat("the hashes on this rank are (", own, "), but on rank 0 they are (",
                                root, ")"),
                         "Install the same libraries on all hosts"});
        }
    });
    return code;
}

void note_code(checkpoint::Record& record, CodeHashes const& code) {
    for (auto const& [key, hash] : code) {
        record.notes[note_of(key)] = hash;
    }
}

std::set<std::string> keys_of_noted_code(checkpoint::Record const& record) {
    std::set<std::string> keys;
    for (auto const& [name, text] : record.notes) {
        if (name.starts_with(code_note)) {
            keys.insert(name.substr(code_note.size()));
        }
    }
    return keys;
}

void compare_code(
    checkpoint::Record const& record, config::Deck const& deck, CodeHashes const& code,
    std::function<void(std::string const& what, std::string const& why)> const& changed) {
    auto const named = nn::named_code(deck);
    for (auto const& [key, hash] : code) {
        auto const before = record.notes.find(note_of(key));
        if (before != record.notes.end() && before->second != hash) {
            changed(concat(key, " = ", named.at(key)),
                    concat("the hash of its contents is ", hash, ", but was ", before->second));
        }
    }
}

std::vector<std::string> require_code_of_file(comm::Communicator const& world,
                                              config::Deck const& deck,
                                              checkpoint::VerifiedFile const& file, bool force) {
    std::vector<std::string> allowed;
    auto const code = same_code_hashes(world, deck);
    if (code.empty()) {
        return allowed;
    }
    comm::agree(world, "comparing plug-ins with the file", [&] {
        auto const weights = checkpoint::open_weights(file);
        compare_code(weights->record(), deck, code, [&](auto const& what, auto const& why) {
            if (!force) {
                throw Error(ExitCode::usage,
                            {concat(what, " is not the library that ", file.path().string(),
                                    " was trained with"),
                             why,
                             "Copy the old library back, or allow the new library with --force"});
            }
            allowed.push_back(concat("other contents of ", what, ": ", why));
        });
    });
    return allowed;
}

} // namespace lockstep::train

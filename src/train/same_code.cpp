#include "same_code.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "nn/named_code.hpp"

namespace lockstep::train {

namespace {

std::string note_of(std::string const& key) {
    return concat("hash of ", key);
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
                        {"this rank's plug-ins or libraries of operators differ from rank 0's",
                         concat("the hashes of their contents are ", own, " on this rank and ",
                                root, " on rank 0"),
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

void compare_code(
    checkpoint::Record const& record, CodeHashes const& code,
    std::function<void(std::string const& key, std::string const& why)> const& changed) {
    for (auto const& [key, hash] : code) {
        auto const before = record.notes.find(note_of(key));
        if (before != record.notes.end() && before->second != hash) {
            changed(key,
                    concat("the hash of its contents is ", hash, ", but was ", before->second));
        }
    }
}

} // namespace lockstep::train

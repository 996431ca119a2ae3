#include "same_data.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "progress.hpp"

namespace lockstep::train {

namespace {

constexpr char const* note = "classes"; ///< their names, a line each

Error changed(checkpoint::Reader const& reader, std::string const& why) {
    return {ExitCode::usage,
            {concat("data.train is not what ", reader.path().string(), " was trained on"), why,
             "Copy the old files back, allow the change with --force, or start over with "
             "--checkpoint.resume none"}};
}

/// What a file gives no name has none that could change.
void require_same_classes(checkpoint::Reader const& reader, data::Dataset const& train) {
    auto const& now = train.declared_classes();
    auto const found = reader.record().notes.find(note);
    if (now.empty() || found == reader.record().notes.end()) {
        return;
    }
    auto const before = split(found->second, '\n');
    auto const [was, is] = std::ranges::mismatch(before, now);
    if (was == before.end() && is == now.end()) {
        return;
    }
    auto const name_at = [](auto const& names, auto at) {
        return at == names.end() ? std::string("missing") : *at;
    };
    throw changed(reader, concat("its class ", was - before.begin(), " is ", name_at(now, is),
                                 ", but was ", name_at(before, was)));
}

} // namespace

void note_classes(checkpoint::Record& record, data::Dataset const* train) {
    if (train != nullptr && !train->declared_classes().empty()) {
        record.notes[note] = joined(train->declared_classes(), "\n");
    }
}

void require_same_data(checkpoint::Reader const& reader, std::uint64_t fingerprint,
                       data::Dataset const* train) {
    if (train != nullptr) {
        require_same_classes(reader, *train);
    }
    if (static_cast<std::uint64_t>(integer_of(reader.record(), "data")) != fingerprint) {
        throw changed(reader, "the files' contents have changed");
    }
}

} // namespace lockstep::train

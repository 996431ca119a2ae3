#include "same_data.hpp"

#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "lockstep/base/error.hpp"

#include "progress.hpp"

namespace lockstep::train {

namespace {

Error changed(checkpoint::Reader const& reader, std::string const& why) {
    return {ExitCode::usage,
            {concat("data.train is not what ", reader.path().string(), " was trained on"), why,
             "Copy the old files back, allow the change with --force, or start over with "
             "--checkpoint.resume none"}};
}

} // namespace

void require_same_data(checkpoint::Reader const& reader, std::uint64_t fingerprint,
                       data::Facts const& facts) {
    auto const& file = reader.path();
    auto const known = facts_of(reader.record(), file);
    if (auto const differs = data::difference(facts, known, file.filename().string());
        !differs.empty()) {
        throw changed(reader, differs);
    }
    if (static_cast<std::uint64_t>(integer_of(reader.record(), "data")) != fingerprint) {
        throw changed(reader, "the files' contents have changed");
    }
}

} // namespace lockstep::train

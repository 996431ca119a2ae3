#include "road.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

namespace lockstep::launch {

namespace {

bool is_own(std::int64_t code) {
    return (code >= static_cast<int>(ExitCode::usage) &&
            code < static_cast<int>(ExitCode::rank_lost)) ||
           code == static_cast<int>(ExitCode::superseded);
}

bool holds(std::string const& text, std::string const& phrase) {
    return text.find(phrase) != std::string::npos;
}

/// The run's own word on how it has ended; nothing where a rank was lost. An end that is on record
/// counts, whatever the launcher makes of it, one that fell to a signal that came once more, say:
/// what had to be durable was so before. That the launcher alone has asked for an end means that it
/// has lost a host. mpirun replaces some codes, and a full disk may take no record.
std::optional<ExitCode> word_of(AttemptEnd const& end, bool asked) {
    auto const& record = end.record;
    if (is_own(end.code)) {
        return static_cast<ExitCode>(end.code);
    }
    if (!record.end.empty() && (!record.ended_by_launcher || asked)) {
        return record.end.ends_with("finished") ? ExitCode::ok : ExitCode::interrupted;
    }
    if (is_own(record.failure)) {
        return static_cast<ExitCode>(record.failure);
    }
    if (tells_disk(end.told)) {
        return ExitCode::io;
    }
    return std::nullopt;
}

} // namespace

bool tells_disk(std::string const& text) {
    return holds(text, system_text(ENOSPC)) || holds(text, system_text(EDQUOT)) ||
           holds(text, system_text(EROFS)) || holds(text, "no inode left");
}

bool tells_wrong_result(std::string const& text) {
    return holds(text, "this host computes wrongly");
}

Ending ending_of(AttemptEnd const& end, bool asked) {
    if (auto const word = word_of(end, asked)) {
        return {Road::word, *word};
    }
    if (holds(end.told, "killed because memory ran out")) {
        return {Road::memory, ExitCode::rank_lost};
    }
    return {end.launcher_killed ? Road::launcher : Road::loss, ExitCode::rank_lost};
}

std::string host_named_in(std::string const& told) {
    constexpr std::string_view begin = "root cause: ";
    auto const at = told.find(begin);
    if (at == std::string::npos) {
        return "";
    }
    auto place = told.substr(at + begin.size());
    place.resize(std::min(place.find(": "), place.size()));
    constexpr std::string_view all = "all ranks of ";
    if (place.starts_with(all)) {
        place.erase(0, all.size());
        return place.substr(0, place.find(' '));
    }
    auto const open = place.starts_with("rank") ? place.find('(') : std::string::npos;
    auto const named = open == std::string::npos ? "" : place.substr(open + 1);
    return named.substr(0, named.find_first_of(",)"));
}

} // namespace lockstep::launch

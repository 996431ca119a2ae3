#include "federate/roster.hpp"

#include "base/letters.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <functional>

namespace lockstep::federate {

namespace {

Error no_roster(std::string const& why) {
    return {ExitCode::data,
            {"the list of a round's sites is not valid", why,
             "Ask the coordinator to send the list again"}};
}

} // namespace

std::string lines_of(std::vector<std::string> const& names) {
    return joined(names, "\n");
}

std::vector<std::string> lines_in(std::string const& text) {
    return split(text, '\n');
}

bool contains(std::vector<std::string> const& names, std::string const& name) {
    return std::ranges::find(names, name) != names.end();
}

bool is_site_name(std::string const& name) {
    return !name.empty() && name.size() <= 64 && name != "coordinator" &&
           std::ranges::all_of(name, [](char letter) {
               return is_alphanumeric(letter) || letter == '-' || letter == '_';
           });
}

std::string Roster::text() const {
    std::vector<std::string> lines;
    for (auto const& member : members) {
        lines.push_back(concat(member.name, " ", hex_text(member.share_key), " ",
                               hex_text(member.mask_key), " ", member.samples));
    }
    return lines_of(lines);
}

Roster Roster::of_text(std::string const& text) {
    Roster roster;
    for (auto const& line : lines_in(text)) {
        auto const words = split(line, ' ');
        if (words.size() != 4) {
            throw no_roster(concat("its line \"", line, "\" does not have four words"));
        }
        auto const share_key = fixed_octets<32>(words[1]);
        auto const mask_key = fixed_octets<32>(words[2]);
        auto const samples = number_of<std::int64_t>(words[3]);
        if (!is_site_name(words[0]) || !share_key || !mask_key || !samples || *samples < 1) {
            throw no_roster(
                concat("its line \"", line, "\" is not a name, two keys and a number of samples"));
        }
        roster.members.push_back({words[0], *share_key, *mask_key, *samples});
    }
    auto const before = [](Member const& a, Member const& b) { return a.name < b.name; };
    if (roster.members.empty() ||
        std::ranges::adjacent_find(roster.members, std::not_fn(before)) != roster.members.end()) {
        throw no_roster("it is empty, or its names are not in order");
    }
    return roster;
}

Member const* Roster::find(std::string const& name) const {
    auto const found = std::ranges::find(members, name, &Member::name);
    return found == members.end() ? nullptr : &*found;
}

std::size_t Roster::place_of(Member const& member) const {
    return static_cast<std::size_t>(std::ranges::find(members, member.name, &Member::name) -
                                    members.begin());
}

std::vector<Member> Roster::part(std::vector<std::string> const& names) const {
    std::vector<Member> part;
    for (auto const& name : names) {
        auto const* const member = find(name);
        if (member == nullptr) {
            throw no_roster(concat(name, " is missing from it"));
        }
        part.push_back(*member);
    }
    return part;
}

double Roster::weight_of(Member const& member, Charter const& charter) const {
    if (charter.is_private()) {
        return 1;
    }
    auto const largest = std::ranges::max(members, {}, &Member::samples).samples;
    return static_cast<double>(member.samples) / static_cast<double>(largest);
}

FixedPoint Roster::fixed_point(Charter const& charter) const {
    double weights = 0;
    for (auto const& member : members) {
        weights += weight_of(member, charter);
    }
    return FixedPoint::for_sum(charter.range, weights, members.size());
}

} // namespace lockstep::federate

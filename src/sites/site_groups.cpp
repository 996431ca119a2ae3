#include "sites/site_groups.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <iostream>

namespace lockstep::sites {

namespace {

constexpr char const* leave_request = "leave"; ///< any other request is a line to be written

void print_line(std::string const& line) {
    std::cout << concat(line, "\n") << std::flush;
}

/// "training at step 5" of "rank 1 (host, cpu) in training at step 5".
std::string phase_of(AgreedError const& error) {
    constexpr std::string_view before = ") in ";
    auto const at = error.cause().find(before);
    return at == std::string::npos ? error.cause() : error.cause().substr(at + before.size());
}

} // namespace

SiteGroups::SiteGroups(comm::Communicator const& world, std::int64_t groups)
    : world_(world), count_(static_cast<std::size_t>(groups)),
      number_(static_cast<std::size_t>(world.rank()) * count_ /
              static_cast<std::size_t>(world.size())),
      ranks_(world.split(static_cast<int>(number_))) {
    if (count_ > 1) {
        desk_.emplace(world, world.is_root() ? comm::RequestDesk::Answer(
                                                   [this](int, std::string const& request) {
                                                       return answer(request);
                                                   })
                                             : comm::RequestDesk::Answer());
    }
}

std::string SiteGroups::answer(std::string const& request) {
    if (request == leave_request) {
        desk_->announce();
    } else {
        print_line(request);
    }
    return "done";
}

void SiteGroups::say(std::string const& line) {
    if (desk_) {
        desk_->ask(0, line);
    } else {
        print_line(line);
    }
}

void SiteGroups::ask_to_leave() {
    if (desk_ && ranks_.is_root()) {
        desk_->ask(0, leave_request);
    }
}

bool SiteGroups::must_leave() {
    return desk_ && desk_->was_announced();
}

void SiteGroups::work_apart(std::string const& about, std::function<void()> const& work) {
    std::optional<Error> failure;
    std::string phase;
    try {
        work();
    } catch (
        AgreedError const& error) { // by the whole group; its rank that failed tells the others
        if (std::clamp(error.rank(), 0, ranks_.size() - 1) == ranks_.rank()) {
            failure.emplace(error);
            phase = concat(phase_of(error), about.empty() ? "" : concat(" (", about, ")"));
        }
        ask_to_leave();
    }
    comm::agree_on(world_, phase, failure);
}

} // namespace lockstep::sites

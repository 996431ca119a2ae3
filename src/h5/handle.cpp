#include "h5/handle.hpp"

#include "base/code_place.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <utility>

#include "fault.hpp"

namespace lockstep::h5 {

namespace {

struct Consequence {
    ExitCode code;
    char const* next;
};

Consequence of(Doing doing) {
    switch (doing) {
    case Doing::reading:
        return {ExitCode::data, "The file is damaged or has another layout. Copy the file again "
                                "from its source, or create the file again"};
    case Doing::planning:
        return {ExitCode::memory, "Ask for more memory"};
    case Doing::writing:
        break;
    }
    return {ExitCode::io, "Check the disk's free space, quota and health"};
}

} // namespace

Id check(Id result, Doing doing, std::string_view call, std::source_location at) {
    if (result >= 0) {
        return result;
    }
    auto const fault = take_fault();
    auto const what = concat(call, " failed (", code_place(at), ")");
    if (fault.error_number != 0) {
        throw system_error(what, fault.error_number, of(Doing::writing).next);
    }
    auto const [code, next] = of(doing);
    throw Error(code, {what, fault.why, next});
}

Handle::Handle(Handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}

Handle& Handle::operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
}

Handle::~Handle() {
    if (id_ >= 0) {
        closer_(id_);
    }
}

void Handle::close(std::string_view what) {
    if (id_ >= 0) {
        check(closer_(std::exchange(id_, -1)), Doing::writing, concat("closing ", what));
    }
}

} // namespace lockstep::h5

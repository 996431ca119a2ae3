#include "lockstep/h5/handle.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <hdf5.h>

#include <string>
#include <utility>

namespace lockstep::h5 {

namespace {

// The first entry of a walk upwards is where the fault arose.
herr_t keep_first(unsigned number, H5E_error2_t const* entry, void* into) {
    if (number == 0 && entry->desc != nullptr) {
        *static_cast<std::string*>(into) = entry->desc;
    }
    return 0;
}

} // namespace

Id check(Id result, std::string_view call, std::source_location at) {
    if (result >= 0) {
        return result;
    }
    std::string reason;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
    H5Eclear2(H5E_DEFAULT);
    bool const reading = call.find("open") != std::string_view::npos ||
                         call.find("read") != std::string_view::npos ||
                         call.find("get") != std::string_view::npos;
    throw Error(reading ? ExitCode::data : ExitCode::io,
                {concat(call, " failed (", at.file_name(), ":", at.line(), ")"),
                 reason.empty() ? "HDF5 gives no reason" : reason,
                 reading ? "The file is damaged or not of the expected form"
                         : "Check the disk's free space, quota and health"});
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

void Handle::close() {
    if (id_ >= 0) {
        check(closer_(std::exchange(id_, -1)), "closing an HDF5 object");
    }
}

} // namespace lockstep::h5

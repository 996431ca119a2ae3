#include "trace/request.hpp"

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::trace {

std::filesystem::path request_file(std::filesystem::path const& run) {
    return run / "profile.request";
}

void ask_for_steps(std::filesystem::path const& run, std::int64_t steps) {
    if (std::filesystem::exists(request_file(run))) { // its author waits for so many steps
        throw Error(ExitCode::cannot_create,
                    {concat("a timeline of ", run.string(), " is already requested"),
                     concat("the run has not yet read the request ", request_file(run).string()),
                     "Wait for the run's next step, or remove the file of the request"});
    }
    write_text_durably(request_file(run), concat(steps, "\n"));
}

std::int64_t take_request(std::filesystem::path const& run, std::int64_t max) noexcept {
    try {
        auto const file = request_file(run);
        struct stat info {};
        if (::lstat(file.c_str(), &info) != 0) {
            return 0;
        }
        std::int64_t steps = 0;
        // A pipe would be waited for, a link may lead anywhere.
        Descriptor const open(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (open.is_open() && ::fstat(open.get(), &info) == 0 && S_ISREG(info.st_mode) &&
            info.st_uid == ::geteuid()) {
            std::array<char, 24> text{};
            auto const bytes = ::read(open.get(), text.data(), text.size());
            auto const words = trimmed(std::string_view(
                text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{0}));
            steps = number_of<std::int64_t>(std::string(words)).value_or(0);
        }
        std::error_code stays; // it is looked at again, and is no request for ever
        bool const removed = std::filesystem::remove(file, stays);
        return removed && steps >= 1 && steps <= max ? steps : 0;
    } catch (...) {
        return 0;
    }
}

} // namespace lockstep::trace

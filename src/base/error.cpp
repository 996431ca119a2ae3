#include "lockstep/base/error.hpp"

#include "base/escaped.hpp"
#include "base/failed_allocation.hpp"
#include "base/foreign_errors.hpp"
#include "base/input_error.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace lockstep {

namespace {

std::string sentence(ErrorText const& text) {
    std::string message = text.what;
    if (!text.why.empty()) {
        message += ": " + text.why;
    }
    if (!text.next.empty()) {
        message += ". " + text.next;
    }
    return escaped_line(
        message); // names in files could begin a line of their own, as if it were ours
}

/// What std::thread says where the system has no memory for a stack, or no more threads to give.
Error no_thread() {
    return Error(
        ExitCode::memory,
        {"a thread could not be started",
         concat(bytes_text(memory_left_at_peak()), " of memory were left for this process"),
         "Ask for more memory, or raise the limits on memory (ulimit -d, -v) and on "
         "threads (ulimit -u)"});
}

Error internal_error(std::string const& why) {
    return Error(ExitCode::software, {"internal error", why, "This is a bug; please report it"});
}

/// What libstdc++ says is "filesystem error: cannot rename: No such file or directory [A] [B]".
Error of_file_system(std::filesystem::filesystem_error const& error) {
    std::string_view text = error.what();
    constexpr std::string_view prefix = "filesystem error: ";
    text.remove_prefix(text.starts_with(prefix) ? prefix.size() : 0);
    auto const doing = text.substr(0, text.find(": "));
    // Whoever asks for a link's own status is about to write.
    constexpr std::array looks{"status", "directory iterator", "recursive directory iterator",
                               "cannot get file size", "cannot get file time"};
    if (std::ranges::any_of(looks, [&](auto* look) { return doing.starts_with(look); })) {
        return input_error(error.path1(), error.code().value());
    }
    auto const to = error.path2().empty() ? "" : concat(" to ", error.path2().string());
    return system_error(concat(doing == "symlink_status" ? "cannot look for" : doing, " ",
                               error.path1().string(), to),
                        error.code().value(),
                        "Check the path, the owner of the path and the free space of the disk");
}

std::string remedy_for(int error_number, std::string const& otherwise) {
    return error_number == EMFILE   ? "Raise the limit on open files (ulimit -n)"
           : error_number == EFBIG  ? "Raise or remove the limit on file sizes (ulimit -f)"
           : error_number == ENFILE ? "Close files in other programs, because this host has "
                                      "reached its limit on open files"
                                    : otherwise;
}

} // namespace

Error::Error(ExitCode code, ErrorText text)
    : std::runtime_error(sentence(text)), code_(code), text_(std::move(text)) {}

AgreedError::AgreedError(ExitCode code, ErrorText text, int rank, std::string cause)
    : Error(code, std::move(text)), rank_(rank), cause_(std::move(cause)) {}

Error current_error() {
    try {
        throw;
    } catch (Error const& error) {
        return error;
    } catch (FailedAllocation const& failure) {
        release_reserve();
        return out_of_memory(concat(bytes_text(failure.bytes()), " were needed"));
    } catch (std::bad_alloc const&) {
        release_reserve();
        return out_of_memory("an allocation failed");
    } catch (std::length_error const&) {
        return out_of_memory("an array was requested that is larger than any memory");
    } catch (std::filesystem::filesystem_error const& error) {
        return of_file_system(error);
    } catch (std::system_error const& error) {
        if (error.code() == std::errc::resource_unavailable_try_again) {
            return no_thread();
        }
        return internal_error(error.what());
    } catch (std::exception const& error) {
        auto const foreign = foreign_error().load();
        auto const known = foreign == nullptr ? std::nullopt : foreign();
        return known ? *known : internal_error(first_line(error.what()));
    } catch (...) {
        return internal_error("an unknown exception");
    }
}

std::atomic<ForeignError>& foreign_error() noexcept {
    static std::atomic<ForeignError> ask{nullptr};
    return ask;
}

std::string memory_remedy() { // of whoever trains; imports and exports end here, too
    return "Ask for more memory, or start fewer ranks per host. Training needs less with a lower "
           "data.batch (and a higher optimizer.accumulate), precision.gradient-checkpointing = "
           "true, precision.compute = bf16 or a smaller model";
}

Error out_of_memory(std::string const& needed) {
    return Error(ExitCode::memory, {"out of memory",
                                    concat(needed, "; ", bytes_text(memory_left_at_peak()),
                                           " of memory were left for this process"),
                                    memory_remedy()});
}

std::string system_text(int error_number) {
    return std::generic_category().message(error_number);
}

Error system_error(std::string const& what, int error_number, std::string const& next) {
    ExitCode code = ExitCode::io;
    switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
        code = ExitCode::no_input;
        break;
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case EISDIR:
        code = ExitCode::cannot_create;
        break;
    case ENAMETOOLONG:
        code = ExitCode::usage;
        break;
    case ENOMEM:
        code = ExitCode::memory;
        break;
    default:
        break;
    }
    return Error(code, {what, system_text(error_number), remedy_for(error_number, next)});
}
} // namespace lockstep

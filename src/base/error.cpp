#include "lockstep/base/error.hpp"

#include "base/escaped.hpp"
#include "base/failed_allocation.hpp"
#include "base/input_error.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "base/vendors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
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

// Of whoever trains; imports and exports end here, too.
constexpr char const* memory_remedy =
    "Ask for more memory, or start fewer ranks per host. Training needs less with a lower "
    "data.batch (and a higher optimizer.accumulate), precision.gradient-checkpointing = true, "
    "precision.compute = bf16 or a smaller model";

Error out_of_memory(std::string const& needed) {
    return Error(ExitCode::memory, {"out of memory",
                                    concat(needed, "; ", bytes_text(memory_left_at_peak()),
                                           " of memory were left for this process"),
                                    memory_remedy});
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

bool holds_any(std::string const& text, std::span<char const* const> phrases) {
    return std::ranges::any_of(
        phrases, [&](char const* phrase) { return text.find(phrase) != std::string::npos; });
}

/// What LibTorch says when a GPU is full: "Tried to allocate 2.00 GiB. GPU 0 has a total capacity
/// of 79.10 GiB of which 1.00 GiB is free. ..."
std::optional<Error> out_of_device_memory(std::string const& text) {
    constexpr std::string_view tried = "Tried to allocate ";
    auto const at = text.find(tried);
    if (at == std::string::npos) {
        return std::nullopt;
    }
    auto const sentence = [&](std::size_t from) {
        return text.substr(from, text.find(". ", from) - from);
    };
    auto const gpu = text.find("GPU ", at);
    return Error(ExitCode::memory,
                 {"out of device memory",
                  concat(sentence(at + tried.size()), " were needed; ",
                         gpu == std::string::npos ? "the device is full" : sentence(gpu)),
                  memory_remedy});
}

/// What LibTorch says of a GPU that broke down, beside mistakes of a program: the texts of the
/// vendor's runtime.
std::optional<Error> failed_device(std::string const& text) {
    auto const found = std::ranges::find_if(vendors(), [&](Vendor const& vendor) {
        return text.find(vendor.failed) != std::string::npos;
    });
    constexpr std::array failures{
        "ECC",           "NVLink",     "nvlink", "ardware", "unspecified launch failure",
        "unknown error", "GPU is lost"};
    if (found == vendors().end() || !holds_any(text, failures)) {
        return std::nullopt;
    }
    return Error(ExitCode::rank_lost,
                 {"a GPU failed", text,
                  concat("Start the run again. It resumes from its last checkpoint. If the GPU "
                         "fails again, exclude this host and have the GPU checked (dmesg, ",
                         found->tool, ")")});
}

/// What a kernel says of an index that is not of the tensor it reads: a GPU, some time after it was
/// launched, that an assertion has failed.
std::optional<Error> index_out_of_range(std::string const& text) {
    constexpr std::array phrases{"device-side assert", "index out of range"};
    if (!holds_any(text, phrases)) {
        return std::nullopt;
    }
    return Error(ExitCode::usage,
                 {"a kernel was given an index that is out of range", text,
                  "Check that each token and class in the data is below the size that the model "
                  "was built with (model.vocabulary, task.vocabulary or the number of classes). "
                  "With run.device = cpu, this message names the batch"});
}

/// What LibTorch's allocators say of a failure that they do not throw as std::bad_alloc.
std::optional<std::string> failed_allocation(std::string const& text) {
    constexpr std::string_view tried = "tried to allocate ";
    if (auto const at = text.find(tried); at != std::string::npos) {
        auto const amount = text.substr(at + tried.size());
        char* end = nullptr;
        auto const bytes = std::strtoull(amount.c_str(), &end, 10);
        bool const in_bytes = std::string_view(end).starts_with(" bytes");
        return concat(in_bytes ? bytes_text(bytes) : amount.substr(0, amount.find(". ")),
                      " were needed");
    }
    constexpr std::array phrases{"out of memory", "not enough memory"};
    return holds_any(text, phrases) ? std::optional(text) : std::nullopt;
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
        auto const text = first_line(error.what());
        if (auto const full = out_of_device_memory(text)) {
            return *full;
        }
        if (auto const failed = failed_device(text)) {
            return *failed;
        }
        if (auto const index = index_out_of_range(text)) {
            return *index;
        }
        if (auto const needed = failed_allocation(text)) {
            return out_of_memory(*needed);
        }
        return internal_error(text);
    } catch (...) {
        return internal_error("an unknown exception");
    }
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

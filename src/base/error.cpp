#include "lockstep/base/error.hpp"

#include "lockstep/base/memory.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

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
    return message;
}

Error out_of_memory(std::string const& why) {
    return Error(ExitCode::memory,
                 {"out of memory",
                  concat(why, "; the host can give this process ", bytes_text(available_memory())),
                  "Lower data.batch or the model's size, start fewer ranks per host, or ask for "
                  "more memory"});
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
    } catch (std::bad_alloc const&) {
        return out_of_memory("an allocation failed");
    } catch (std::exception const& error) {
        // LibTorch appends a stack of calls after the first line.
        std::string text = error.what();
        text.erase(std::min(text.find('\n'), text.size()));
        // Its allocators throw no std::bad_alloc; only their texts tell.
        for (char const* phrase : {"allocate memory", "out of memory", "not enough memory"}) {
            if (text.find(phrase) != std::string::npos) {
                return out_of_memory(text);
            }
        }
        return Error(ExitCode::software, {"internal error", text, "Please report this"});
    } catch (...) {
        return Error(ExitCode::software,
                     {"internal error", "an unknown exception", "Please report this"});
    }
}

Error system_error(std::string const& what, int error_number, std::string const& next) {
    ExitCode code = ExitCode::io;
    switch (error_number) {
    case ENOENT:
    case ENOTDIR:
        code = ExitCode::no_input;
        break;
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case EISDIR:
        code = ExitCode::cannot_create;
        break;
    case ENOMEM:
        code = ExitCode::memory;
        break;
    default:
        break;
    }
    return Error(code, {what, std::strerror(error_number), next});
}

} // namespace lockstep

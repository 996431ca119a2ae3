#include "trace/trace_file.hpp"

#include "base/file.hpp"
#include "base/own_directory.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/messages.hpp"
#include "lockstep/base/error.hpp"
#include "trace/trace_text.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

namespace lockstep::trace {

struct TraceFile::Stream {
    gzFile file = nullptr;
};

namespace {

Error write_error(std::filesystem::path const& path) {
    return {ExitCode::io,
            {concat("cannot write ", path.string()), "the disk is full, or has failed",
             "Free some space, and ask for the timeline again"}};
}

} // namespace

TraceFile::TraceFile(std::filesystem::path path)
    : path_(std::move(path)), partial_(partial_path(path_)), stream_(std::make_unique<Stream>()) {
    make_own_directory(path_.parent_path());
    errno = 0;
    stream_->file = ::gzopen(partial_.c_str(), "wbx3"); // x: new, and no link
    if (stream_->file == nullptr) {
        throw creation_error(concat("cannot create ", partial_.string()), path_.parent_path(),
                             errno);
    }
}

TraceFile::~TraceFile() {
    if (stream_->file != nullptr) {
        static_cast<void>(::gzclose(stream_->file));
        std::error_code ignored;
        std::filesystem::remove(partial_, ignored);
    }
}

void TraceFile::append(std::string_view text) {
    constexpr std::size_t at_once = std::size_t{1} << 30; // zlib counts by unsigned int
    while (!text.empty()) {
        auto const part = text.substr(0, at_once);
        if (::gzwrite(stream_->file, part.data(), static_cast<unsigned>(part.size())) <= 0) {
            throw write_error(path_);
        }
        text.remove_prefix(part.size());
    }
}

void TraceFile::commit() {
    auto* const file = std::exchange(stream_->file, nullptr);
    std::error_code failure;
    if (::gzclose(file) != Z_OK) {
        std::filesystem::remove(partial_, failure);
        throw write_error(path_);
    }
    std::filesystem::rename(partial_, path_, failure);
    if (failure) {
        throw write_error(path_);
    }
}

void write_merged(comm::Communicator const& comm, std::filesystem::path const& path,
                  std::string const& events, std::string const& tail) {
    if (!comm.is_root()) {
        std::array const size{static_cast<std::int64_t>(events.size())};
        comm::send(comm, std::as_bytes(std::span(size)), 0);
        comm::send(comm, std::as_bytes(std::span(events)), 0);
        return;
    }
    std::optional<TraceFile> file;
    std::optional<Error> failure = comm::failure_of([&] {
        file.emplace(path);
        file->append(trace_head());
        file->append(events);
    });
    for (int rank = 1; rank < comm.size(); ++rank) {
        std::array<std::int64_t, 1> size{};
        comm::receive(comm, std::as_writable_bytes(std::span(size)), rank);
        std::string text(static_cast<std::size_t>(size[0]), '\0');
        comm::receive(comm, std::as_writable_bytes(std::span(text)), rank);
        if (!failure) { // else what they send is taken all the same
            failure = comm::failure_of([&] {
                file->append(",\n");
                file->append(text);
            });
        }
    }
    if (!failure) {
        failure = comm::failure_of([&] {
            file->append(tail);
            file->commit();
        });
    }
    if (failure) {
        throw Error(*failure);
    }
}

} // namespace lockstep::trace

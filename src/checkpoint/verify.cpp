#include "lockstep/checkpoint/verify.hpp"

#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/safetensors.hpp"
#include "comm/agree.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace lockstep::checkpoint {

namespace {

constexpr std::string_view recorded = "LOCKSTEPSEAL";

/// Every `stride`th block from `first` on.
struct Share {
    std::uint64_t first = 0;
    std::uint64_t stride = 1;
};

std::optional<Damage> length_damage(std::uint64_t length, std::uint64_t recorded) {
    if (length < recorded) {
        return Damage{length, recorded - 1,
                      concat("the file was cut short at byte ", length, " of ", recorded)};
    }
    if (length > recorded) {
        return Damage{
            recorded, length - 1,
            concat("the file had ", recorded, " bytes when it was written and now has ", length)};
    }
    return std::nullopt;
}

std::vector<Damage> damages(File const& file, Share share) {
    ChecksumHeader checksums;
    try {
        checksums = read_checksum_header(file);
    } catch (Error const& error) {
        if (error.code() != ExitCode::data) {
            throw;
        }
        return {{0, checksum_header_bytes - 1, error.text().why}};
    }
    std::vector<Damage> found;
    auto const length = file.size();
    if (auto const damage = length_damage(length, checksums.length)) {
        found.push_back(*damage);
    }
    for (auto block = share.first; block < checksums.hashes.size(); block += share.stride) {
        bool const whole = checksums.last_byte(block) < length;
        if (whole && hash_of_block(file, checksums, block) != checksums.hashes[block]) {
            found.push_back({checksums.first_byte(block), checksums.last_byte(block),
                             concat("block ", block, " has changed since the file was written")});
        }
    }
    return found;
}

bool begins_with(File const& file, std::string_view mark) {
    std::string first(mark.size(), '\0');
    if (file.size() >= mark.size()) {
        file.read_at(0, std::as_writable_bytes(std::span(first)));
    }
    return first == mark;
}

/// What an HDF5 file without our marks is; nothing where that may be a damaged one of ours, whose
/// checksum header tells where.
std::optional<ErrorText> of_others(std::filesystem::path const& path) {
    try {
        auto const format = h5::File::open(path).text_attribute("/", "format").value_or("");
        if (format == checkpoint_format || format == model_format) {
            return std::nullopt;
        }
        bool const samples = format == "lockstep-dataset";
        return ErrorText{
            concat(path.string(), " is not a checkpoint"),
            samples ? "it is a data set" : "it is an HDF5 file that another program wrote",
            samples ? concat("Run lockstep data info or lockstep data verify on ", path.string())
                    : std::string("Name a checkpoint, a best.h5 or a safetensors file")};
    } catch (Error const&) {
        // HDF5's own bytes are the first in files of others, and behind a checksum header in ours.
        if (begins_with(File::open_read(path), "\x89HDF")) {
            throw;
        }
        return std::nullopt;
    }
}

/// A file of another kind is not a damaged one.
void require_of_ours(std::filesystem::path const& path) {
    auto const file = File::open_read(path);
    auto const kind = kind_of_file(path);
    if (!kind.name.empty()) {
        throw Error(ExitCode::data,
                    {concat(path.string(), " is not a checkpoint"), concat("it is ", kind.name),
                     kind.weights.empty()
                         ? std::string("Name a checkpoint, a best.h5 or a safetensors file")
                         : kind.weights});
    }
    if (begins_with(file, recorded)) {
        return;
    }
    if (auto const text = of_others(path)) {
        throw Error(ExitCode::data, *text);
    }
}

void require_whole(std::filesystem::path const& path, Share share) {
    if (is_safetensors(path)) {
        return;
    }
    require_of_ours(path);
    auto const file = File::open_read(path);
    auto const found = damages(file, share);
    if (!found.empty()) {
        auto const& first = found.front();
        throw Error(ExitCode::data,
                    {concat(path.string(), " is damaged"),
                     concat(first.what, " (bytes ", first.first_byte, " to ", first.last_byte, ")"),
                     remedy_for(content_of(file))});
    }
}

} // namespace

std::vector<Damage> verify(std::filesystem::path const& path) {
    return damages(File::open_read(path), {});
}

VerifiedFile::VerifiedFile(std::filesystem::path path) : path_(std::move(path)) {
    require_whole(path_, {});
}

VerifiedFile VerifiedFile::unchecked(std::filesystem::path path) {
    if (!is_safetensors(path)) {
        require_of_ours(path);
    }
    return {std::move(path), Known()};
}

VerifiedFile VerifiedFile::in_memory(std::filesystem::path name) {
    return {std::move(name), Known()};
}

VerifiedFile verify_together(comm::Communicator const& comm, std::filesystem::path const& path) {
    Share const share{static_cast<std::uint64_t>(comm.rank()),
                      static_cast<std::uint64_t>(comm.size())};
    comm::agree(comm, "verifying a file", [&] { require_whole(path, share); });
    return {path, VerifiedFile::Known()};
}

} // namespace lockstep::checkpoint

#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sndfile.h>
#include <span>
#include <string_view>

#include "../source_file.hpp"
#include "decoders.hpp"

namespace lockstep::import::media {

namespace {

constexpr sf_count_t frames_at_once = 65536;
constexpr int max_channels = 64;
/// 2 GiB; a small compressed file may claim, and hold, any number.
constexpr std::size_t max_values = std::size_t{1} << 29;

[[noreturn]] void refuse(std::filesystem::path const& path, std::string const& why) {
    throw Error(ExitCode::data,
                {path.string(), why, "Replace the file, or skip unreadable files with --skip-bad"});
}

/// What programs write as the length of a WAV file that goes to a pipe; or 0.
constexpr std::array<unsigned long long, 4> unknown_lengths{0xffffffff, 0x7fffffff, 0x7ffff000,
                                                            0x80000000};

/// Whether a WAV file's header says that it holds no values. libsndfile reads a file that was cut
/// short to its end; only its log tells.
bool says_empty(std::filesystem::path const& path, SNDFILE* file) {
    std::array<char, 4096> log{};
    sf_command(file, SFC_GET_LOG_INFO, log.data(), static_cast<int>(log.size()) - 1);
    for (auto const& line : split(log.data(), '\n')) {
        unsigned long long said = 0;
        unsigned long long there = 0;
        // NOLINTNEXTLINE(cert-err34-c): the count says what was read
        auto const read = std::sscanf(line.c_str(), "data : %llu (should be %llu)", &said, &there);
        if (read == 2 && said > there &&
            std::ranges::find(unknown_lengths, said) == unknown_lengths.end()) {
            refuse(path, concat("it was cut short (", there, " of ", said, " bytes are there)"));
        }
        if (read == 1 && said == 0) {
            return true;
        }
    }
    return false;
}

/// A recording of libsndfile's, from a file or from memory.
class Recording {
  public:
    explicit Recording(std::filesystem::path const& path)
        : file_(sf_open(path.c_str(), SFM_READ, &info_)) {}
    explicit Recording(std::string bytes) : bytes_(std::move(bytes)) {
        static SF_VIRTUAL_IO io{
            [](void* of) { return static_cast<sf_count_t>(self(of).bytes_.size()); },
            [](sf_count_t by, int from, void* of) {
                auto const end = static_cast<sf_count_t>(self(of).bytes_.size());
                auto const base = from == SEEK_SET ? 0 : from == SEEK_CUR ? self(of).at_ : end;
                return self(of).at_ = std::clamp<sf_count_t>(base + by, 0, end);
            },
            [](void* to, sf_count_t count, void* of) {
                auto const end = static_cast<sf_count_t>(self(of).bytes_.size());
                auto const got = std::min(count, end - self(of).at_);
                std::copy_n(self(of).bytes_.data() + self(of).at_, got, static_cast<char*>(to));
                self(of).at_ += got;
                return got;
            },
            nullptr, [](void* of) { return self(of).at_; }};
        file_ = sf_open_virtual(&io, SFM_READ, &info_, this);
    }
    Recording(Recording const&) = delete;
    Recording& operator=(Recording const&) = delete;
    ~Recording() { sf_close(file_); }

    SNDFILE* file() const { return file_; }
    SF_INFO const& info() const { return info_; }

  private:
    static Recording& self(void* of) { return *static_cast<Recording*>(of); }

    SF_INFO info_{};
    std::string bytes_;
    sf_count_t at_ = 0;
    SNDFILE* file_ = nullptr;
};

/// A WAV file whose header was written before its values were known: with their length, which
/// reaches to the file's end unless other chunks do.
std::string with_length(std::string bytes) {
    auto const chunk = [&](std::size_t at) {
        std::uint32_t length = 0;
        std::memcpy(&length, bytes.data() + at + 4, 4);
        return std::size_t{8} + length + length % 2;
    };
    std::size_t at = 12;
    while (at + 8 <= bytes.size() && bytes.compare(at, 4, "data") != 0) {
        at += chunk(at);
    }
    auto end = at + 8;
    while (end + 8 <= bytes.size()) {
        end += chunk(end);
    }
    if (bytes.starts_with("RIFF") && at + 8 < bytes.size() && end != bytes.size()) {
        auto const length = static_cast<std::uint32_t>(bytes.size() - at - 8);
        std::memcpy(bytes.data() + at + 4, &length, 4);
    }
    return bytes;
}

/// What is wrong with a file that libsndfile does not open.
std::string failure_of(std::filesystem::path const& path) {
    std::string const reason = sf_strerror(nullptr);
    auto const file = File::open_read(path);
    std::array<char, 12> head{};
    auto const size = file.size();
    auto const there = static_cast<std::size_t>(std::min<std::uint64_t>(size, head.size()));
    file.read_at(0, std::as_writable_bytes(std::span(head).first(there)));
    std::string_view const text(head.data(), there);
    std::uint32_t said = 0;
    std::memcpy(&said, head.data() + 4, sizeof said);
    bool const known = std::ranges::find(unknown_lengths, said) == unknown_lengths.end();
    constexpr std::string_view riff = "RIFF";
    bool const cut = (text.starts_with(riff) || riff.starts_with(text)) &&
                     (there < head.size() || (known && said + std::uint64_t{8} > size));
    return text.empty() ? "it is empty" : cut ? "it was cut short" : reason;
}

} // namespace

Sound decode_sound(std::filesystem::path const& path) {
    require_file(path);
    auto opened = std::make_unique<Recording>(path);
    if (opened->file() != nullptr && says_empty(path, opened->file())) {
        opened = std::make_unique<Recording>(with_length(read_text(path)));
    }
    if (opened->file() == nullptr) {
        refuse(path, failure_of(path));
    }
    auto const& info = opened->info();
    auto* const file = opened->file();
    if (info.channels < 1 || info.channels > max_channels || info.samplerate < 1) {
        refuse(path, concat("it has ", info.channels, " channels at ", info.samplerate,
                            " Hz, which is not supported"));
    }
    Sound sound{info.samplerate, info.channels, {}};
    auto const channels = static_cast<std::size_t>(info.channels);
    std::vector<float> frames(static_cast<std::size_t>(frames_at_once) * channels);
    // Block by block, since the header may claim any length.
    for (;;) {
        auto const got = sf_readf_float(file, frames.data(), frames_at_once);
        for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
            float sum = 0;
            for (std::size_t c = 0; c < channels; ++c) {
                sum += frames[i * channels + c];
            }
            if (!std::isfinite(sum)) {
                refuse(path, concat("value ", sound.values.size(), " is not finite"));
            }
            sound.values.push_back(sum / static_cast<float>(channels));
        }
        if (got < frames_at_once) {
            break;
        }
        if (sound.values.size() > max_values) {
            refuse(path, "it has more than the 2^29 values per channel that are supported");
        }
    }
    bool const length_is_known = info.frames < SF_COUNT_MAX; // a FLAC file may leave it out
    if (sf_error(file) != SF_ERR_NO_ERROR ||
        (length_is_known && static_cast<sf_count_t>(sound.values.size()) < info.frames)) {
        refuse(path, concat("it ends after ", sound.values.size(), " of ", info.frames,
                            " values per channel"));
    }
    if (sound.values.empty()) {
        refuse(path, "it has no values");
    }
    return sound;
}

} // namespace lockstep::import::media

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sndfile.h>

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

/// libsndfile reads a WAV file that was cut short to its end; only its log tells.
void require_whole(std::filesystem::path const& path, SNDFILE* file) {
    std::array<char, 4096> log{};
    sf_command(file, SFC_GET_LOG_INFO, log.data(), static_cast<int>(log.size()) - 1);
    for (auto const& line : split(log.data(), '\n')) {
        unsigned long long said = 0;
        unsigned long long there = 0;
        // NOLINTNEXTLINE(cert-err34-c): the count says what was read
        if (std::sscanf(line.c_str(), "data : %llu (should be %llu)", &said, &there) == 2 &&
            said > there) {
            refuse(path, concat("it was cut short (", there, " of ", said, " bytes are there)"));
        }
    }
}

} // namespace

Sound decode_sound(std::filesystem::path const& path) {
    require_file(path);
    SF_INFO info{};
    std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> const file(sf_open(path.c_str(), SFM_READ, &info),
                                                           sf_close);
    if (!file) {
        refuse(path, sf_strerror(nullptr));
    }
    require_whole(path, file.get());
    if (info.channels < 1 || info.channels > max_channels || info.samplerate < 1) {
        refuse(path, concat("it has ", info.channels, " channels at ", info.samplerate,
                            " Hz, which is not supported"));
    }
    Sound sound{info.samplerate, {}};
    auto const channels = static_cast<std::size_t>(info.channels);
    std::vector<float> frames(static_cast<std::size_t>(frames_at_once) * channels);
    // Block by block, since the header may claim any length.
    for (;;) {
        auto const got = sf_readf_float(file.get(), frames.data(), frames_at_once);
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
    if (sf_error(file.get()) != SF_ERR_NO_ERROR ||
        static_cast<sf_count_t>(sound.values.size()) < info.frames) {
        refuse(path, concat("it ends after ", sound.values.size(), " of ", info.frames,
                            " values per channel"));
    }
    return sound;
}

} // namespace lockstep::import::media

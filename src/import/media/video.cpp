#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include "../container.hpp"
#include "../source_file.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <array>
#include <memory>

#include "decoders.hpp"

namespace lockstep::import::media {

namespace {

/// Frees what libav made through a pointer to its pointer.
template <auto free>
struct FreeBy {
    template <class T>
    void operator()(T* object) const {
        free(&object);
    }
};
using Format = std::unique_ptr<AVFormatContext, FreeBy<avformat_close_input>>;
using Decoder = std::unique_ptr<AVCodecContext, FreeBy<avcodec_free_context>>;
using Packet = std::unique_ptr<AVPacket, FreeBy<av_packet_free>>;
using Frame = std::unique_ptr<AVFrame, FreeBy<av_frame_free>>;

/// One video on its way through demuxer, decoder and conversion to RGB.
class Video {
  public:
    Video(std::filesystem::path const& path, std::function<void(Image&&)> const& sink)
        : path_(path), sink_(sink), packet_(av_packet_alloc()), frame_(av_frame_alloc()) {
        av_log_set_level(AV_LOG_QUIET); // what is wrong is in our error
        AVFormatContext* format = nullptr;
        check(avformat_open_input(&format, path.c_str(), nullptr, nullptr), "opening it");
        format_.reset(format);
        check(avformat_find_stream_info(format, nullptr), "looking for its streams");
        AVCodec const* codec = nullptr;
        stream_ = check(av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0),
                        "looking for a video stream");
        decoder_.reset(avcodec_alloc_context3(codec));
        check(avcodec_parameters_to_context(decoder_.get(), format->streams[stream_]->codecpar),
              "reading its codec parameters");
        decoder_->thread_count = 1;
        decoder_->max_pixels = max_pixels;
        decoder_->flags |= AV_CODEC_FLAG_BITEXACT;
        check(avcodec_open2(decoder_.get(), codec, nullptr), "opening its decoder");
    }
    Video(Video const&) = delete;
    Video& operator=(Video const&) = delete;
    ~Video() { sws_freeContext(scaler_); }

    void read() {
        int result = 0;
        while ((result = av_read_frame(format_.get(), packet_.get())) >= 0) {
            if (packet_->stream_index == stream_) {
                if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) {
                    refuse(concat("it is damaged or cut short", after_frames()));
                }
                check(avcodec_send_packet(decoder_.get(), packet_.get()), "decoding");
                drain();
            }
            av_packet_unref(packet_.get());
        }
        if (result != AVERROR_EOF) {
            check(result, "reading");
        }
        check(avcodec_send_packet(decoder_.get(), nullptr), "decoding its last frames");
        drain();
        // Headers promise any number of frames: what is missing shows as a damaged packet.
        if (frames_ == 0) {
            refuse("it holds no frame");
        }
    }

  private:
    int check(int code, std::string const& doing) const {
        if (code < 0) {
            std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
            av_strerror(code, text.data(), text.size());
            refuse(concat(doing, " failed", frames_ > 0 ? after_frames() : "", " (", text.data(),
                          ")"));
        }
        return code;
    }
    std::string after_frames() const { return concat(" after ", amount_of(frames_, "frame")); }
    [[noreturn]] void refuse(std::string const& why) const {
        throw Error(ExitCode::data, {path_.string(), why,
                                     "Replace the file, or skip unreadable files with --skip-bad"});
    }

    void drain() {
        int result = 0;
        while ((result = avcodec_receive_frame(decoder_.get(), frame_.get())) >= 0) {
            if (frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0) {
                refuse(concat("frame ", frames_, " is damaged"));
            }
            sink_(converted());
            ++frames_;
            av_frame_unref(frame_.get());
        }
        if (result != AVERROR(EAGAIN) && result != AVERROR_EOF) {
            check(result, "decoding");
        }
    }

    Image converted() {
        auto const width = frame_->width;
        auto const height = frame_->height;
        if (width <= 0 || height <= 0 ||
            static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height) > max_pixels) {
            refuse(concat("frame ", frames_, " has ", width, "x", height,
                          " pixels, which is not supported"));
        }
        // A frame may have another size than the one before.
        scaler_ = sws_getCachedContext(
            scaler_, width, height, static_cast<AVPixelFormat>(frame_->format), width, height,
            AV_PIX_FMT_RGB24, SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT,
            nullptr, nullptr, nullptr);
        if (scaler_ == nullptr) {
            refuse(concat("frame ", frames_, " has a pixel format that cannot be converted"));
        }
        Image image{static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height), 3, {}};
        // Rows of 64 bytes, and some more at the end: swscale's vector code writes in whole units.
        auto const pitch = (width * 3 + 63) / 64 * 64;
        padded_.resize(static_cast<std::size_t>(pitch) * static_cast<std::size_t>(height) + 64);
        std::uint8_t* const planes[] = {padded_.data()};
        int const pitches[] = {pitch};
        sws_scale(scaler_, frame_->data, frame_->linesize, 0, height, planes, pitches);
        for (int y = 0; y < height; ++y) {
            auto const row = padded_.begin() + static_cast<std::ptrdiff_t>(y) * pitch;
            image.values.insert(image.values.end(), row, row + std::ptrdiff_t{3} * width);
        }
        return image;
    }

    std::filesystem::path const& path_;
    std::function<void(Image&&)> const& sink_;
    Format format_;
    Decoder decoder_;
    Packet packet_;
    Frame frame_;
    SwsContext* scaler_ = nullptr;
    std::vector<std::uint8_t> padded_;
    int stream_ = 0;
    std::int64_t frames_ = 0;
};

} // namespace

void decode_video(std::filesystem::path const& path, std::function<void(Image&&)> const& sink) {
    require_file(path);
    if (auto const said = container_bytes(path); said > std::filesystem::file_size(path)) {
        throw Error(ExitCode::data, {path.string(),
                                     concat("it was cut short (", std::filesystem::file_size(path),
                                            " of ", said, " bytes are there)"),
                                     "Replace the file, or skip unreadable files with --skip-bad"});
    }
    Video(path, sink).read();
}

} // namespace lockstep::import::media

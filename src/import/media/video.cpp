#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"

#include "../container.hpp"
#include "../source_file.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <array>
#include <memory>
#include <string_view>

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

/// The demuxers of the files that an import looks for. Others read playlists, which lead to other
/// files or hosts.
constexpr char const* demuxers = "avi,matroska,webm,mov,mpeg,mpegts,mpegvideo";

/// Options of libav, by name.
class Dictionary {
  public:
    Dictionary(std::initializer_list<std::pair<char const*, char const*>> entries) {
        for (auto const& [name, value] : entries) {
            av_dict_set(&entries_, name, value, 0);
        }
    }
    Dictionary(Dictionary const&) = delete;
    Dictionary& operator=(Dictionary const&) = delete;
    ~Dictionary() { av_dict_free(&entries_); }

    AVDictionary** pointer() { return &entries_; }

  private:
    AVDictionary* entries_ = nullptr;
};

/// One video on its way through demuxer, decoder and conversion to RGB.
class Video {
  public:
    Video(std::filesystem::path const& path, std::function<void(Image&&)> const& sink)
        : path_(path), sink_(sink), packet_(av_packet_alloc()), frame_(av_frame_alloc()) {
        av_log_set_level(AV_LOG_QUIET);                     // what is wrong is in our error
        AVFormatContext* format = avformat_alloc_context(); // freed where it cannot be opened
        format->interrupt_callback.callback = [](void*) {
            return SignalRequests::pending() != 0 ? 1 : 0;
        };
        Dictionary options{{"format_whitelist", demuxers},
                           {"protocol_whitelist", "file"},
                           {"enable_drefs", "0"}, // of QuickTime files: parts in other files
                           {"use_absolute_path", "0"}};
        int const opened = avformat_open_input(&format, path.c_str(), nullptr, options.pointer());
        if (opened == AVERROR(EINVAL)) {
            refuse("it is no AVI, Matroska, MP4, MOV or MPEG file");
        }
        check(opened, "opening it");
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
        decoder_->err_recognition |= AV_EF_EXPLODE; // instead of filling what is damaged
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
                ++packets_;
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
        if (frames_ == 0) {
            refuse("it holds no frame");
        }
        require_all_packets();
    }

  private:
    /// Only AVI files state how many there are. Elsewhere, what is missing shows as a damaged one.
    void require_all_packets() const {
        constexpr std::int64_t open = 0x40000000; // what writers state before they know
        auto const said = format_->streams[stream_]->nb_frames;
        if (format_->iformat->name == std::string_view("avi") && said < open && packets_ < said) {
            refuse(concat("it was cut short (", packets_, " of ", amount_of(said, "frame"),
                          " are there)"));
        }
    }

    int check(int code, std::string const& doing) const {
        if (code == AVERROR_EXIT) {
            throw Error(ExitCode::interrupted,
                        {"the import was interrupted", "a signal asked it to stop",
                         "Run the same command again to resume it"});
        }
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
    std::int64_t packets_ = 0;
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

#include "import/video_source.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <deque>

#include "codec/video.hpp"
#include "find_files.hpp"
#include "listed_source.hpp"

namespace lockstep::import {

namespace {

std::vector<std::string> image_endings() {
    return {".png", ".jpg", ".jpeg"};
}

std::vector<std::string> video_endings() {
    return {".avi", ".mkv", ".mov", ".mp4", ".mpg", ".mpeg", ".webm"};
}

/// Gathers frames, each [channels, height, width], into clips [channels, frames, height, width].
class ClipCutter {
  public:
    ClipCutter(VideoImport const& options, std::int64_t label,
               std::function<void(Sample&&)> const& sink)
        : options_(options), label_(label), sink_(sink) {}

    void add(std::vector<std::byte>&& frame) {
        if (seen_++ < next_) {
            return; // between two clips
        }
        frames_.push_back(std::move(frame));
        if (frames_.size() < options_.frames) {
            return;
        }
        sink_({{clip(), bytes_of(std::vector{label_})}, label_, concat(", frame ", next_)});
        next_ += options_.stride;
        auto const gone = std::min<std::size_t>(options_.stride, frames_.size());
        frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    std::uint64_t seen() const { return seen_; }
    /// Whether frames follow that no clip holds, and that are not between two clips.
    bool leaves_frames() const {
        return seen_ + options_.stride > next_ + std::max(options_.stride, options_.frames);
    }

  private:
    std::vector<std::byte> clip() const {
        std::vector<std::byte> clip;
        auto const channels = options_.gray ? 1U : 3U;
        auto const plane = frames_.front().size() / channels;
        clip.reserve(frames_.front().size() * frames_.size());
        for (std::size_t c = 0; c < channels; ++c) {
            for (auto const& frame : frames_) {
                auto const at = frame.begin() + static_cast<std::ptrdiff_t>(c * plane);
                clip.insert(clip.end(), at, at + static_cast<std::ptrdiff_t>(plane));
            }
        }
        return clip;
    }

    VideoImport const& options_;
    std::int64_t label_;
    std::function<void(Sample&&)> const& sink_;
    std::deque<std::vector<std::byte>> frames_;
    std::uint64_t seen_ = 0;
    std::uint64_t next_ = 0; ///< first frame of the next clip
};

class VideoSource : public ListedSource {
  public:
    explicit VideoSource(VideoImport const& options)
        : ListedSource(list_files({.source = options.source,
                                   .labels = options.labels,
                                   .split_by = options.split_by,
                                   .endings = video_endings(),
                                   .frame_endings = image_endings()})),
          options_(options) {
        if (options_.stride == 0) {
            options_.stride = options_.frames;
        }
        form_.fields = {{"inputs",
                         h5::Type::u8,
                         {options.gray ? 1U : 3U, options.frames, options.height, options.width}},
                        {"targets", h5::Type::i64, {}}};
        form_.class_names = listing_.class_names;
        form_.moments = ImportForm::Moments::by_channel;
    }

    std::string identity() const override {
        return concat("video ", options_.frames, " ", options_.stride, " ", options_.width, "x",
                      options_.height, options_.gray ? " gray\n" : "\n", listing_.identity());
    }
    std::int64_t items_at_once() const override {
        return static_cast<std::int64_t>(
            std::clamp<std::uint64_t>(bytes_at_once / form_.fields.front().row_bytes(), 1, 64));
    }

    std::string read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        ClipCutter cutter(options_, label(item), sink);
        std::string note;
        auto const add = [&](Image&& image) {
            if (note.empty() && !image.note.empty()) {
                note = concat("of a frame, ", image.note);
            }
            if (options_.gray) {
                image = to_gray(image);
            }
            cutter.add(channels_first(resized(image, options_.width, options_.height)));
        };
        auto const& path = entry(item).path;
        if (std::filesystem::is_directory(path)) {
            for (auto const& frame : files_in(path, image_endings())) {
                add(read_image(frame, Alpha::drop));
            }
        } else {
            read_video(path, add);
        }
        if (cutter.seen() < options_.frames) {
            throw Error(ExitCode::data, {path.string(),
                                         concat("it has ", amount_of(cutter.seen(), "frame"),
                                                ", but a clip needs ", options_.frames),
                                         "Lower --frames, or skip short videos with --skip-bad"});
        }
        if (cutter.leaves_frames()) {
            note += concat(note.empty() ? "" : "; ",
                           "its last frames are in no clip, since a clip needs ", options_.frames);
        }
        return note;
    }

  private:
    VideoImport options_;
};

} // namespace

std::unique_ptr<ImportSource> video_source(VideoImport const& options) {
    return std::make_unique<VideoSource>(options);
}

} // namespace lockstep::import

#include "import/image_source.hpp"

#include "base/text.hpp"
#include "data/format.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "codec/image.hpp"
#include "given_moments.hpp"
#include "listed_source.hpp"

namespace lockstep::import {

namespace {

class ImageSource : public ListedSource {
  public:
    explicit ImageSource(ImageImport const& options)
        : ListedSource(list_files({options.source,
                                   options.labels,
                                   options.split_by,
                                   {".png", ".jpg", ".jpeg"},
                                   {},
                                   options.unlabelled,
                                   options.more})),
          options_(options) {
        if (options_.width == 0) {
            take_size_of_first();
        }
        if (options_.shorter > 0 && options_.shorter < std::max(options_.width, options_.height)) {
            throw Error(ExitCode::usage, {concat("--shorter ", options_.shorter),
                                          concat("images would not cover the size of ",
                                                 options_.width, "x", options_.height),
                                          "Give a number that is at least as large as both sides"});
        }
        auto const channels = (options_.gray ? 1U : 3U) + (options_.alpha == Alpha::keep ? 1U : 0U);
        form_.fields = {{"inputs", h5::Type::u8, {channels, options_.height, options_.width}}};
        if (options_.flat) {
            form_.fields[0].row.erase(form_.fields[0].row.begin());
        }
        if (!options_.unlabelled) {
            form_.fields.push_back({"targets", h5::Type::i64, {}});
        }
        form_.class_names = listing_.class_names;
        form_.moments = options_.unlabelled ? ImportForm::Moments::none
                        : options_.flat     ? ImportForm::Moments::one
                                            : ImportForm::Moments::by_channel;
        if (!options_.mean.empty()) {
            take_moments(channels);
        }
    }

    std::string identity() const override {
        return concat("images ", options_.width, "x", options_.height, options_.gray ? " gray" : "",
                      options_.unlabelled ? " unlabelled" : "",
                      options_.center_crop ? concat(" cropped from ", options_.shorter) : "",
                      " alpha ", static_cast<int>(options_.alpha), moments_text(), "\n",
                      listing_.identity());
    }
    std::int64_t items_at_once() const override {
        return static_cast<std::int64_t>(
            std::clamp<std::uint64_t>(bytes_at_once / form_.fields.front().row_bytes(), 1, 1024));
    }

    std::string read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        auto image = read_image(entry(item).path, options_.alpha);
        auto const note = image.note;
        if (options_.gray) {
            image = to_gray(image);
        }
        if (any_size_) {
            image = options_.center_crop ? covering(image, options_.width, options_.height,
                                                    options_.shorter, entry(item).path)
                                         : resized(image, options_.width, options_.height);
        } else if (image.width != options_.width || image.height != options_.height) {
            throw Error(ExitCode::data, {entry(item).path.string(),
                                         concat("it has ", image.width, "x", image.height,
                                                " pixels, but the first image has ", options_.width,
                                                "x", options_.height),
                                         "Scale all images to one size with --size WxH"});
        }
        Sample sample{{channels_first(image)}, label(item)};
        if (!options_.unlabelled) {
            sample.fields.push_back(bytes_of(std::vector{label(item)}));
        }
        sink(std::move(sample));
        return note;
    }

  private:
    std::string moments_text() const {
        std::string text;
        for (auto const* const values : {&options_.mean, &options_.std}) {
            for (auto const value : *values) {
                text += concat(" ", value);
            }
        }
        return text;
    }

    void take_moments(std::size_t channels) {
        require_given_moments(options_.mean, options_.std, {channels},
                              concat("the images have ", amount_of(channels, "channel")));
        form_.moments = ImportForm::Moments::none;
        form_.mean = options_.mean;
        form_.std = options_.std;
        form_.mean.resize(channels, form_.mean.front());
        form_.std.resize(channels, form_.std.front());
        if (auto text = data::undivided_text(h5::Type::u8, form_.mean, "--mean"); !text.empty()) {
            listing_.remarks.push_back(std::move(text));
        }
    }

    /// Takes the first that can be read: what is wrong with others is told when they are read.
    void take_size_of_first() {
        any_size_ = false;
        for (auto const& entry : listing_.entries) {
            try {
                auto const image = read_image(entry.path, options_.alpha);
                options_.width = image.width;
                options_.height = image.height;
                return;
            } catch (Error const& error) {
                if (error.code() == ExitCode::unavailable || &entry == &listing_.entries.back()) {
                    throw;
                }
            }
        }
    }

    ImageImport options_;
    bool any_size_ = true;
};

} // namespace

std::unique_ptr<ImportSource> image_source(ImageImport const& options) {
    return std::make_unique<ImageSource>(options);
}

} // namespace lockstep::import

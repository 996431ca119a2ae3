#include "import/idx_source.hpp"

#include "base/list.hpp"
#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/class_names.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "idx_file.hpp"

namespace lockstep::import {

namespace {

constexpr std::int64_t samples_at_once = 4096;

struct IdxSet {
    std::string name;
    std::filesystem::path images_path;
    h5::Shape sample_shape;
    std::vector<std::byte> images;
    std::vector<std::int64_t> labels;
};

IdxSet read_set(std::filesystem::path const& images_path,
                std::filesystem::path const& labels_path) {
    IdxFile images(images_path);
    IdxFile labels(labels_path);
    if (images.shape().size() == 1 && labels.shape().size() > 1) {
        images.refuse(concat("it holds labels, but ", labels_path.string(), " holds images"),
                      "Name the file of the images first: IMAGES,LABELS");
    }
    if (labels.shape().size() != 1 || labels.shape()[0] != images.shape()[0]) {
        labels.refuse(concat("it does not hold ", images.shape()[0],
                             " labels, one for each image of ", images_path.string()));
    }
    IdxSet set;
    set.sample_shape.assign(images.shape().begin() + 1, images.shape().end());
    set.images.resize(h5::elements(images.shape()));
    images.read(set.images);
    images.require_end();
    std::vector<std::byte> raw(labels.shape()[0]);
    labels.read(raw);
    labels.require_end();
    for (auto const label : raw) {
        set.labels.push_back(std::to_integer<std::int64_t>(label));
    }
    return set;
}

/// NAME or NAME.gz in a directory.
std::filesystem::path idx_path(std::filesystem::path const& directory, std::string const& name) {
    auto const plain = directory / name;
    return std::filesystem::exists(plain) ? plain : std::filesystem::path(plain.string() + ".gz");
}

/// A pair of files, or the two pairs of a directory; all values are in memory.
class IdxSource : public ImportSource {
  public:
    explicit IdxSource(IdxImport const& options) {
        std::error_code none;
        bool const folder = std::filesystem::is_directory(options.source, none);
        auto const pair = folder ? std::vector<std::string>{} : list_texts(options.source.string());
        if (pair.size() == 2) {
            add("", pair[0], pair[1], options.classes);
        } else {
            auto const file = [&](char const* name) { return idx_path(options.source, name); };
            add("train", file("train-images-idx3-ubyte"), file("train-labels-idx1-ubyte"),
                options.classes);
            // A label that no training image has must be among the names.
            add("test", file("t10k-images-idx3-ubyte"), file("t10k-labels-idx1-ubyte"),
                form_.class_names);
        }
        if (sets_.back().sample_shape != sets_.front().sample_shape) {
            throw Error(ExitCode::data,
                        {options.source.string(),
                         "the training images and the test images have different shapes",
                         "Download all files from the same data set"});
        }
        form_.fields = {{"inputs", h5::Type::u8, sets_.front().sample_shape},
                        {"targets", h5::Type::i64, {}}};
        form_.moments = ImportForm::Moments::one;
    }

    std::string identity() const override {
        return concat("idx ", joined(form_.class_names, ","), "\n", identity_);
    }
    ImportForm const& form() const override { return form_; }
    std::int64_t items() const override { return count(0) + count(1); }
    std::string name(std::int64_t item) const override {
        return concat(set_of(item).images_path.string(), " image ", place(item));
    }
    std::string origin(std::int64_t item) const override { return concat("image ", place(item)); }
    std::int64_t label(std::int64_t item) const override {
        return set_of(item).labels[place(item)];
    }
    std::string set(std::int64_t item) const override { return set_of(item).name; }
    std::int64_t items_at_once() const override { return samples_at_once; }

    std::string read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        auto const& images = set_of(item).images;
        auto const bytes = form_.fields.front().row_bytes();
        auto const at = images.begin() + static_cast<std::ptrdiff_t>(place(item) * bytes);
        sink({{{at, at + static_cast<std::ptrdiff_t>(bytes)}, bytes_of(std::vector{label(item)})},
              label(item)});
        return {};
    }

  private:
    void add(std::string const& name, std::filesystem::path const& images,
             std::filesystem::path const& labels, std::vector<std::string> const& classes) {
        auto& set = sets_.emplace_back(read_set(images, labels));
        set.name = name;
        set.images_path = images;
        form_.class_names = data::complete_names(classes, set.labels, labels);
        data::require_names(form_.class_names, "--classes: ");
        identity_ += stamp(images) + stamp(labels);
    }
    std::int64_t count(std::size_t set) const {
        return set < sets_.size() ? static_cast<std::int64_t>(sets_[set].labels.size()) : 0;
    }
    IdxSet const& set_of(std::int64_t item) const { return sets_[item < count(0) ? 0 : 1]; }
    std::size_t place(std::int64_t item) const {
        return static_cast<std::size_t>(item < count(0) ? item : item - count(0));
    }

    std::vector<IdxSet> sets_;
    ImportForm form_;
    std::string identity_;
};

} // namespace

std::unique_ptr<ImportSource> idx_source(IdxImport const& options) {
    return std::make_unique<IdxSource>(options);
}

} // namespace lockstep::import

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/data/import.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "writer.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t samples_at_once = 4096;

/// An IDX file of bytes: big-endian header, then the values. zlib reads plain files as they are.
class IdxFile {
  public:
    explicit IdxFile(std::filesystem::path path)
        : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb"), gzclose) {
        if (!std::filesystem::exists(path_) || !file_) {
            throw Error(ExitCode::no_input, {concat("cannot open ", path_.string()), "no such file",
                                             "Name the directory that holds the IDX files"});
        }
        auto const magic = number();
        if ((magic >> 8) != 0x08) { // two zero bytes, then the type: unsigned bytes
            damaged("it does not begin like an IDX file of bytes");
        }
        auto const dimensions = magic & 0xff;
        for (std::uint32_t i = 0; i < dimensions; ++i) {
            shape_.push_back(number());
        }
        if (shape_.empty()) {
            damaged("its header names no dimensions");
        }
    }

    h5::Shape const& shape() const noexcept { return shape_; }

    void read(std::span<std::byte> into) {
        while (!into.empty()) {
            auto const most = static_cast<unsigned>(std::min<std::size_t>(into.size(), 1U << 30));
            int const got = gzread(file_.get(), into.data(), most);
            if (got <= 0) {
                damaged(concat("it ends ", into.size(), " bytes before its header says"));
            }
            into = into.subspan(static_cast<std::size_t>(got));
        }
    }

    [[noreturn]] void damaged(std::string const& why) const {
        throw Error(ExitCode::data, {path_.string(), why, "Fetch the file again"});
    }

  private:
    std::uint32_t number() {
        std::array<std::byte, 4> bytes{};
        read(bytes);
        std::uint32_t value = 0;
        for (auto const byte : bytes) {
            value = (value << 8) | std::to_integer<std::uint32_t>(byte);
        }
        return value;
    }

    std::filesystem::path path_;
    std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
    h5::Shape shape_;
};

struct IdxSet {
    h5::Shape sample_shape;
    std::vector<std::byte> images;
    std::vector<std::int64_t> labels;
};

IdxSet read_set(std::filesystem::path const& images_path,
                std::filesystem::path const& labels_path) {
    IdxFile images(images_path);
    IdxFile labels(labels_path);
    if (labels.shape().size() != 1 || labels.shape()[0] != images.shape()[0]) {
        labels.damaged(concat("it does not hold ", images.shape()[0], " labels, one for each of ",
                              images_path.string()));
    }
    IdxSet set;
    set.sample_shape.assign(images.shape().begin() + 1, images.shape().end());
    set.images.resize(h5::elements(images.shape()));
    images.read(set.images);
    std::vector<std::byte> raw(labels.shape()[0]);
    labels.read(raw);
    for (auto const label : raw) {
        set.labels.push_back(std::to_integer<std::int64_t>(label));
    }
    return set;
}

/// Mean and standard deviation of all values / 255, from exact whole-number sums.
std::pair<double, double> moments_of(std::vector<std::byte> const& values) {
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (auto const value : values) {
        auto const number = std::to_integer<std::uint64_t>(value);
        sum += number;
        squares += number * number;
    }
    auto const count = static_cast<double>(std::max<std::size_t>(values.size(), 1));
    double const mean = static_cast<double>(sum) / count / 255;
    double const variance = static_cast<double>(squares) / count / 255 / 255 - mean * mean;
    return {mean, variance > 0 ? std::sqrt(variance) : 1};
}

std::vector<std::string> class_names(IdxImport const& options, IdxSet const& set) {
    auto names = options.classes;
    auto const largest = std::max_element(set.labels.begin(), set.labels.end());
    auto const needed = largest == set.labels.end() ? 0 : static_cast<std::size_t>(*largest) + 1;
    if (!names.empty() && names.size() < needed) {
        throw Error(ExitCode::usage, {concat(names.size(), " class names"),
                                      concat("the labels go up to ", needed - 1),
                                      concat("Name ", needed, " classes")});
    }
    while (names.size() < needed) {
        names.push_back(std::to_string(names.size()));
    }
    return names;
}

ImportedFile write_set(IdxSet const& set, SetForm form, std::filesystem::path const& path,
                       ImportProgress const& progress) {
    form.samples = static_cast<std::int64_t>(set.labels.size());
    form.sample_shape = set.sample_shape;
    form.input_type = h5::Type::u8;
    SetWriter writer(path, form);
    auto const sample = h5::elements(set.sample_shape);
    for (std::int64_t done = 0; done < form.samples;) {
        auto const count = std::min(samples_at_once, form.samples - done);
        writer.append_inputs(std::span(set.images)
                                 .subspan(static_cast<std::size_t>(done) * sample,
                                          static_cast<std::size_t>(count) * sample));
        done += count;
        progress(path, done, form.samples);
    }
    writer.write_targets(set.labels);
    return {path, form.samples, writer.commit()};
}

/// NAME or NAME.gz in a directory.
std::filesystem::path idx_path(std::filesystem::path const& directory, std::string const& name) {
    auto const plain = directory / name;
    return std::filesystem::exists(plain) ? plain : std::filesystem::path(plain.string() + ".gz");
}

} // namespace

std::vector<ImportedFile> import_idx(IdxImport const& options, ImportProgress const& progress) {
    auto const form_of = [&](IdxSet const& set) {
        auto const [mean, deviation] = moments_of(set.images);
        SetForm form;
        form.class_names = class_names(options, set);
        form.mean = {mean};
        form.std = {deviation};
        return form;
    };
    auto const pair = split(options.source.string(), ',');
    if (pair.size() == 2) {
        auto const set = read_set(pair[0], pair[1]);
        return {write_set(set, form_of(set), options.out, progress)};
    }
    auto const& from = options.source;
    auto const train = read_set(idx_path(from, "train-images-idx3-ubyte"),
                                idx_path(from, "train-labels-idx1-ubyte"));
    auto const form = form_of(train); // the test set is seen as the training set was
    std::vector<ImportedFile> files{write_set(train, form, options.out / "train.h5", progress)};
    auto const test = read_set(idx_path(from, "t10k-images-idx3-ubyte"),
                               idx_path(from, "t10k-labels-idx1-ubyte"));
    files.push_back(write_set(test, form, options.out / "test.h5", progress));
    return files;
}

} // namespace lockstep::data

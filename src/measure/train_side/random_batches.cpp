#include "measure/train_side/random_batches.hpp"

#include "base/random.hpp"
#include "batches/loaded_batches.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"

#include <string>

namespace lockstep::measure {

namespace {

void write_random_images(std::string const& path, std::int64_t samples, int stream) {
    auto const sample_shape = RandomBatches::sample_shape();
    h5::Shape shape{static_cast<std::uint64_t>(samples)};
    shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
    auto const key = random_key(0, Stream::augmentation, {static_cast<std::uint64_t>(stream)});
    std::vector<std::uint8_t> pixels(h5::elements(shape));
    for (std::size_t at = 0; at < pixels.size(); ++at) {
        pixels[at] = static_cast<std::uint8_t>(mixed(key ^ at));
    }
    std::vector<std::int64_t> labels(static_cast<std::size_t>(samples));
    for (std::size_t at = 0; at < labels.size(); ++at) {
        labels[at] = static_cast<std::int64_t>(mixed(~key ^ at) % RandomBatches::classes);
    }
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::u8, shape);
    file.create_dataset("targets", h5::Type::i64, {labels.size()});
    file.write("inputs", h5::Type::u8, pixels);
    file.write("targets", h5::Type::i64, labels);
    file.close();
}

} // namespace

RandomBatches::RandomBatches(std::int64_t batches, std::int64_t batch, int stream) {
    auto const file = (directory_.path() / "images.h5").string();
    write_random_images(file, batches * batch, stream);
    set_.emplace(data::DatasetOptions{.files = file});
    auto const request = [=, this](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
        if (k == batches) { // asked for by the one worker when it has made all before
            all_made_.set_value();
            return std::nullopt;
        }
        std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
        for (std::size_t i = 0; i < indices.size(); ++i) {
            indices[i] = k * batch + static_cast<std::int64_t>(i);
        }
        return indices;
    };
    auto all_made = all_made_.get_future();
    loader_ = std::make_unique<data::Loader>(
        *set_, request, data::LoaderOptions{.workers = 1, .prefetch = static_cast<int>(batches)});
    all_made.wait();
    source_ = std::make_unique<train::LoadedBatches>(*loader_, set_->inputs(), set_->targets(),
                                                     torch::kCPU);
}

} // namespace lockstep::measure

#include "base/file.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "data/order.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "measure/bench_loader.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep::measure {

namespace {

constexpr std::size_t image_bytes = 784;
constexpr std::int64_t images = 60000;
constexpr std::uint64_t large_values = 1 << 20; ///< 4 MiB per sample
constexpr std::int64_t large_samples = 64;
constexpr std::uint64_t packed_values = 1024; ///< 4 KiB per sample
constexpr std::int64_t packed_samples = 16384;
constexpr std::uint64_t packed_rows = 256; ///< a chunk of 1 MiB
constexpr std::int64_t shards = 1000;
constexpr std::int64_t shard_samples = 16;

/// Calls `work(k)` for k in [0, count), each once, on threads.
void on_threads(int threads, std::int64_t count, std::function<void(std::int64_t)> const& work) {
    std::atomic<std::int64_t> next{0};
    std::vector<std::jthread> crew;
    crew.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
        crew.emplace_back([&] {
            for (auto k = next++; k < count; k = next++) {
                work(k);
            }
        });
    }
}

void write_labels(h5::File& file, std::int64_t samples) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(samples));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = static_cast<std::int64_t>(i % 10);
    }
    file.create_dataset("targets", h5::Type::i64, {labels.size()});
    file.write("targets", h5::Type::i64, labels);
}

std::vector<std::uint8_t> image_values() {
    std::vector<std::uint8_t> values(images * image_bytes);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<std::uint8_t>(mixed(i));
    }
    return values;
}

GeneratedSet small_set() {
    auto const write = [](std::filesystem::path const& path) {
        auto file = h5::File::create(path);
        file.create_dataset("inputs", h5::Type::u8, {images, 28, 28});
        file.write("inputs", h5::Type::u8, image_values());
        write_labels(file, images);
        file.set_attribute("/", "mean", std::vector<double>{0.28});
        file.set_attribute("/", "std", std::vector<double>{0.35});
        file.close();
    };
    auto const values = std::make_shared<std::vector<std::uint8_t> const>(image_values());
    auto const copy = [values](std::filesystem::path const&, data::DatasetOptions const&,
                               int threads) {
        constexpr std::int64_t batch = 64;
        std::array<float, 256> table{};
        for (std::size_t i = 0; i < table.size(); ++i) {
            table[i] = (static_cast<float>(i) / 255.0F - 0.28F) / 0.35F;
        }
        data::Permutation const order(images, 1);
        std::vector<std::vector<float>> buffers(8, std::vector<float>(batch * image_bytes));
        on_threads(threads, (images + batch - 1) / batch, [&](std::int64_t k) {
            auto& buffer = buffers[static_cast<std::size_t>(k) % buffers.size()];
            for (std::int64_t i = k * batch; i < std::min(images, (k + 1) * batch); ++i) {
                auto const* const from =
                    values->data() + static_cast<std::size_t>(order(i)) * image_bytes;
                auto* const to =
                    buffer.data() + static_cast<std::size_t>(i - k * batch) * image_bytes;
                for (std::size_t j = 0; j < image_bytes; ++j) {
                    to[j] = table[from[j]];
                }
            }
        });
    };
    return {"small", images, 64, "full", "", write, copy};
}

GeneratedSet large_set() {
    auto const write = [](std::filesystem::path const& path) {
        auto file = h5::File::create(path);
        file.create_dataset("inputs", h5::Type::f32, {large_samples, large_values});
        auto const at = file.info("inputs").offset.value();
        write_labels(file, large_samples);
        file.close();
        auto const raw = File::open_write(path);
        std::vector<float> sample(large_values);
        for (std::uint64_t i = 0; i < large_samples; ++i) {
            std::fill(sample.begin(), sample.end(), static_cast<float>(i));
            raw.write_at(at + i * large_values * sizeof(float), std::as_bytes(std::span(sample)));
        }
    };
    auto const read = [](std::filesystem::path const& path, data::DatasetOptions const&, int) {
        auto const at = h5::File::open(path).info("inputs").offset.value();
        auto const raw = File::open_read(path);
        std::vector<std::byte> buffer(large_values * sizeof(float));
        for (std::uint64_t i = 0; i < large_samples; ++i) {
            raw.read_at(at + i * buffer.size(), buffer);
        }
    };
    return {"large", large_samples, 4, "full", "", write, read};
}

GeneratedSet packed_set() {
    auto const write = [](std::filesystem::path const& path) {
        auto file = h5::File::create(path);
        std::vector<float> values(packed_samples * packed_values);
        for (std::size_t i = 0; i < values.size(); ++i) {
            // Smooth, with noise in the last bits: as measured fields are.
            values[i] = static_cast<float>(i % packed_values) / 64.0F +
                        static_cast<float>(mixed(i) % 16) / 1024.0F;
        }
        file.create_dataset("inputs", h5::Type::f32, {packed_samples, packed_values},
                            {.chunk_rows = packed_rows, .deflate = 4});
        file.write("inputs", h5::Type::f32, values);
        write_labels(file, packed_samples);
        file.close();
    };
    auto const inflate = [](std::filesystem::path const& path, data::DatasetOptions const&,
                            int threads) {
        auto const storage = h5::File::open(path).storage("inputs");
        auto const raw = File::open_read(path);
        on_threads(threads, static_cast<std::int64_t>(storage.chunks.size()), [&](std::int64_t k) {
            auto const& chunk = storage.chunks[static_cast<std::size_t>(k)];
            std::vector<std::byte> stored(chunk.bytes);
            raw.read_at(chunk.at, stored);
            std::vector<std::byte> bytes(packed_rows * packed_values * sizeof(float));
            auto length = static_cast<uLongf>(bytes.size());
            ::uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length,
                         reinterpret_cast<Bytef const*>(stored.data()),
                         static_cast<uLong>(stored.size()));
        });
    };
    return {"deflate", packed_samples, 64, "block", "", write, inflate};
}

GeneratedSet shard_set() {
    auto const write = [](std::filesystem::path const& directory) {
        make_directories(directory);
        std::vector<std::uint8_t> const values(shard_samples * image_bytes, 1);
        for (std::int64_t i = 0; i < shards; ++i) {
            auto file = h5::File::create(directory / concat("shard-", shards + i, ".h5"));
            file.create_dataset("inputs", h5::Type::u8, {shard_samples, 28, 28});
            file.write("inputs", h5::Type::u8, values);
            write_labels(file, shard_samples);
            file.close();
        }
    };
    return {"shards", shards * shard_samples, 64, "full", "/shard-*.h5", write, {}};
}

} // namespace

GeneratedSet generated_set(std::string const& name) {
    if (name == "small") {
        return small_set();
    }
    if (name == "large") {
        return large_set();
    }
    if (name == "deflate") {
        return packed_set();
    }
    if (name == "shards") {
        return shard_set();
    }
    throw Error(ExitCode::usage,
                {concat("--kind ", name), "the kinds are small, large, deflate, shards and order",
                 "See lockstep bench --help"});
}

} // namespace lockstep::measure

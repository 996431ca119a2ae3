#include "federate/partition.hpp"

#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "h5/text_rows.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

namespace lockstep::federate {

namespace {

/// Numbers in (0, 1], one after the other, of one key.
class Draws {
  public:
    explicit Draws(std::uint64_t key) : key_(key) {}

    double uniform() {
        return static_cast<double>((mixed(key_ ^ mixed(count_++)) >> 11) + 1) * 0x1p-53;
    }
    double normal() {
        auto const radius = std::sqrt(-2 * std::log(uniform()));
        return radius * std::cos(2 * std::numbers::pi * uniform());
    }
    /// The logarithm, since numbers of a small shape are below the smallest double. Marsaglia,
    /// Tsang, "A simple method for generating gamma variables" (TOMS 26, 2000).
    double log_gamma_variable(double shape) {
        if (shape < 1) {
            auto const larger = log_gamma_variable(shape + 1);
            return larger + std::log(uniform()) / shape;
        }
        auto const d = shape - 1.0 / 3;
        while (true) {
            auto const x = normal();
            auto const v = std::pow(1 + x / std::sqrt(9 * d), 3);
            if (v > 0 && std::log(uniform()) < x * x / 2 + d - d * v + d * std::log(v)) {
                return std::log(d * v);
            }
        }
    }

  private:
    std::uint64_t key_;
    std::uint64_t count_ = 0;
};

/// Shares that add up to 1.
std::vector<double> shares(PartitionOptions const& options, Draws& draws) {
    std::vector<double> logs(static_cast<std::size_t>(options.sites), 0);
    if (options.concentration > 0) {
        for (auto& value : logs) {
            value = draws.log_gamma_variable(options.concentration);
        }
    }
    auto const largest = *std::ranges::max_element(logs);
    double sum = 0;
    for (auto& value : logs) {
        value = std::exp(value - largest);
        sum += value;
    }
    for (auto& value : logs) {
        value /= sum;
    }
    return logs;
}

/// A site without samples gets one of the site that has most.
void give_all_one(std::vector<std::int64_t>& owners, std::int64_t sites) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(sites), 0);
    for (auto const owner : owners) {
        ++counts[static_cast<std::size_t>(owner)];
    }
    for (std::size_t site = 0; site < counts.size(); ++site) {
        if (counts[site] == 0) {
            auto const richest = std::ranges::max_element(counts) - counts.begin();
            *std::ranges::find(owners, richest) = static_cast<std::int64_t>(site);
            --counts[static_cast<std::size_t>(richest)];
            ++counts[site];
        }
    }
}

void copy_rows(h5::File const& whole, h5::DatasetInfo const& info,
               std::span<std::int64_t const> samples, h5::File& part) {
    auto const rows = info.shape.at(0);
    auto const type = info.readable_as.value_or(h5::Type::u8);
    auto const row_bytes = h5::elements(info.shape) / rows * h5::size_of(type);
    constexpr std::uint64_t block_bytes = std::uint64_t{8} << 20;
    auto const block =
        std::max<std::uint64_t>(1, block_bytes / std::max<std::uint64_t>(1, row_bytes));
    std::vector<std::byte> out(samples.size() * row_bytes);
    std::vector<std::byte> buffer;
    std::size_t next = 0;
    for (std::uint64_t first = 0; first < rows && next < samples.size(); first += block) {
        auto const count = std::min(block, rows - first);
        buffer.resize(count * row_bytes);
        whole.read_rows(info.path, type, {first, count}, buffer);
        while (next < samples.size() && std::cmp_less(samples[next], first + count)) {
            auto const at = (static_cast<std::uint64_t>(samples[next]) - first) * row_bytes;
            std::copy_n(buffer.begin() + static_cast<std::ptrdiff_t>(at), row_bytes,
                        out.begin() + static_cast<std::ptrdiff_t>(next * row_bytes));
            ++next;
        }
    }
    auto shape = info.shape;
    shape[0] = samples.size();
    part.create_dataset(info.path, type, shape);
    part.write(info.path, type, out);
}

} // namespace

std::vector<std::int64_t> sites_of_samples(std::span<std::int64_t const> labels,
                                           PartitionOptions const& options) {
    if (std::cmp_less(labels.size(), options.sites)) {
        throw Error(ExitCode::usage, {concat("--sites ", options.sites),
                                      concat("each site needs a sample, but data.train has only ",
                                             amount_of(labels.size(), "sample")),
                                      "Lower --sites"});
    }
    std::map<std::int64_t, std::vector<std::size_t>> of_class;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        of_class[labels[i]].push_back(i);
    }
    std::vector<std::int64_t> owners(labels.size(), 0);
    for (auto& [label, samples] : of_class) {
        auto const number = static_cast<std::uint64_t>(label);
        std::ranges::sort(samples, {}, [&](std::size_t sample) {
            return std::pair(random_key(options.seed, Stream::order, {1, number, sample}), sample);
        });
        Draws draws(random_key(options.seed, Stream::order, {2, number}));
        auto const parts = shares(options, draws);
        double before = 0;
        std::size_t next = 0;
        for (std::size_t site = 0; site < parts.size(); ++site) {
            before += parts[site];
            bool const last = site + 1 == parts.size();
            auto const end = last ? samples.size()
                                  : static_cast<std::size_t>(
                                        std::llround(before * static_cast<double>(samples.size())));
            while (next < std::min(end, samples.size())) {
                owners[samples[next++]] = static_cast<std::int64_t>(site);
            }
        }
    }
    give_all_one(owners, options.sites);
    return owners;
}

namespace {

/// What the samples were made from, if the file says so.
void copy_sources(h5::File const& whole, FieldNames const& fields,
                  std::span<std::int64_t const> samples, h5::File& part) {
    constexpr char const* name = "sources";
    bool const is_field = std::ranges::find(fields.names, name) != fields.names.end();
    auto rows = is_field ? std::nullopt : h5::TextRows::in(whole, name);
    if (!rows || (!samples.empty() && !std::cmp_less(samples.back(), rows->count()))) {
        return;
    }
    std::vector<std::string> texts;
    for (auto const sample : samples) {
        texts.push_back(rows->at(whole, static_cast<std::uint64_t>(sample)));
    }
    h5::write_text_rows(part, name, texts);
}

} // namespace

void write_part(std::filesystem::path const& whole, FieldNames const& fields,
                std::span<std::int64_t const> samples, std::vector<std::string> const& classes,
                std::filesystem::path const& part) {
    auto const source = h5::File::open(whole);
    PartialFile partial(partial_path(part));
    {
        auto file = h5::File::create(partial.path());
        for (auto const& name : fields.names) {
            copy_rows(source, source.info(name), samples, file);
        }
        copy_sources(source, fields, samples, file);
        // A part may lack samples of the last classes, which its model must have all the same.
        if (!classes.empty()) {
            file.set_attribute("/", "classes", classes);
        }
        if (auto const columns = source.texts_attribute("/", "columns")) {
            file.set_attribute("/", "columns", *columns);
        }
        for (auto const* const name : {"mean", "std", "sample_rate"}) {
            if (auto const values = source.number_attribute("/", name);
                values && !values->empty()) {
                file.set_attribute("/", name, *values);
            }
        }
        file.close();
    }
    File::open_write(partial.path()).sync();
    partial.rename(part);
}

} // namespace lockstep::federate

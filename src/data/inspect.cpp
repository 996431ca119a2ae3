#include "lockstep/data/inspect.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>

#include "format.hpp"

namespace lockstep::data {

DataInfo describe(std::filesystem::path const& path) {
    Dataset const dataset({.files = path.string()});
    auto const opened = open_samples(path, {"inputs", "targets"});
    auto const file = h5::File::open(path);
    return {path,
            std::filesystem::file_size(path),
            file.text_attribute("/", "format") == format_name,
            file.exists("checksums/inputs"),
            dataset.samples(),
            dataset.sample_shape(),
            dataset.input_type(),
            dataset.class_names(),
            dataset.class_counts(),
            opened.mean,
            opened.std};
}

std::vector<DataDamage> verify(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    auto const raw = File::open_read(path);
    std::vector<DataDamage> damage;
    for (std::string const name : {"inputs", "targets"}) {
        if (!file.exists(name) || !file.exists("checksums/" + name)) {
            throw Error(ExitCode::data,
                        {path.string(), concat("it has no checksums of ", name),
                         "Only files made by lockstep data import can be verified"});
        }
        auto const info = file.info(name);
        auto const bytes = h5::elements(info.shape) * h5::size_of(info.type.value());
        std::vector<std::uint64_t> sums(h5::elements(file.info("checksums/" + name).shape));
        file.read("checksums/" + name, h5::Type::u64, sums.data());
        std::vector<std::byte> block;
        for (std::uint64_t i = 0; i < sums.size(); ++i) {
            auto const begin = info.offset.value() + i * checksum_block;
            block.resize(std::min(checksum_block, bytes - i * checksum_block));
            raw.read_at(begin, block);
            if (hash64(block) != sums[i]) {
                damage.push_back({name, begin, begin + block.size() - 1});
            }
        }
    }
    return damage;
}

} // namespace lockstep::data

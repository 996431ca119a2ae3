#include "comm/agree.hpp"
#include "data/stage_in.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "dataset_parts.hpp"

namespace lockstep::data {

void Dataset::keep_in_memory(comm::Communicator const& host) {
    if (parts_->memory) {
        return; // the other part of these files has asked for it
    }
    std::vector<Field*> fields;
    std::size_t bytes = 0;
    for (auto* const some : {&parts_->inputs, &parts_->targets}) {
        for (auto& field : *some) {
            fields.push_back(&field);
            bytes += field.bytes_on_disk();
        }
    }
    parts_->memory.emplace(host, std::max<std::size_t>(bytes, 1));
    auto const for_fields = [&](auto use) {
        std::span memory(parts_->memory->data(), bytes);
        for (auto* const field : fields) {
            auto const own = memory.first(field->bytes_on_disk());
            memory = memory.subspan(own.size());
            use(*field, own);
        }
    };
    comm::agree(host, "reading data into memory", [&] {
        for_fields([&](Field& field, std::span<std::byte> own) {
            field.fill(parts_->source, own, host.rank(), host.size());
        });
    });
    for_fields([](Field& field, std::span<std::byte> own) { field.read_from_memory(own); });
}

void Dataset::keep_on_disk(std::filesystem::path const& directory, comm::Communicator const& host) {
    if (std::exchange(parts_->on_disk, true)) {
        return; // the other part of these files has asked for it
    }
    auto& files = parts_->source.files;
    std::set<std::size_t> numbers;
    for (auto const* const some : {&parts_->inputs, &parts_->targets}) {
        for (auto const& field : *some) {
            field.add_files_on_disk(numbers);
        }
    }
    std::vector<std::filesystem::path> originals;
    originals.reserve(numbers.size());
    for (auto const number : numbers) {
        originals.push_back(files.path(number));
    }
    auto const copies = stage_in(originals, directory, host);
    comm::agree(host, "reading copies of data", [&] {
        auto copy = copies.begin();
        for (auto const number : numbers) {
            files.read_from_copy(number, *copy++);
        }
    });
}

} // namespace lockstep::data

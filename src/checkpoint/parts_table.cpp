#include "checkpoint/parts_table.hpp"

#include "base/text.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/record_fields.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t fetched_bytes = std::uint64_t{16} << 20; ///< at once
constexpr std::size_t alignment = 64;

std::size_t aligned(std::uint64_t bytes) {
    return static_cast<std::size_t>((bytes + alignment - 1) / alignment * alignment);
}

} // namespace

PartsTable::PartsTable(Snapshot const& snapshot, bool with_record)
    : parts_(snapshot.arrays.size()) {
    if (with_record) {
        record_ = snapshot.record;
        layout_ = layout_text(snapshot.arrays, snapshot.views);
    }
    for (std::size_t array = 0; array < snapshot.arrays.size(); ++array) {
        auto const unit = h5::size_of(snapshot.arrays[array].type);
        for (auto const& part : snapshot.parts[array]) {
            add(array, part.first * unit, part.bytes.size());
        }
    }
}

/// Doubles keep their bits in CBOR, not in JSON.
PartsTable::PartsTable(std::string const& text, std::string const& name) {
    try {
        auto const json = Json::from_cbor(text);
        auto const& record = json.at("record");
        each_field(record_,
                   [&](char const* field, auto& value) { record.at(field).get_to(value); });
        json.at("layout").get_to(layout_);
        parts_.resize(json.at("parts").size());
        for (std::size_t array = 0; array < parts_.size(); ++array) {
            for (auto const& part : json.at("parts").at(array)) {
                add(array, part.at(0).get<std::uint64_t>(), part.at(1).get<std::uint64_t>());
            }
        }
    } catch (Json::exception const&) {
        throw Error(ExitCode::data, {concat("cannot read ", name), "its table of parts is damaged",
                                     "Resume from a checkpoint"});
    }
}

std::string PartsTable::text() const {
    Json record;
    each_field(record_, [&](char const* field, auto const& value) { record[field] = value; });
    auto parts = Json::array();
    for (auto const& of_array : parts_) {
        auto own = Json::array();
        for (auto const& part : of_array) {
            own.push_back({part.first, part.bytes});
        }
        parts.push_back(std::move(own));
    }
    auto const bytes =
        Json::to_cbor(Json{{"record", record}, {"layout", layout_}, {"parts", parts}});
    return {bytes.begin(), bytes.end()};
}

void PartsTable::add(std::size_t array, std::uint64_t first, std::uint64_t bytes) {
    parts_[array].push_back({first, bytes, bytes_});
    bytes_ += aligned(bytes);
}

void PartsTable::copy(Snapshot const& snapshot, std::span<std::byte> block) const {
    for (std::size_t array = 0; array < parts_.size(); ++array) {
        for (std::size_t i = 0; i < parts_[array].size(); ++i) {
            auto const into = block.subspan(parts_[array][i].place, parts_[array][i].bytes);
            std::ranges::copy(snapshot.parts[array][i].bytes, into.begin());
        }
    }
}

PartsTable::Part const* PartsTable::part_at(std::size_t array, std::uint64_t byte) const {
    if (array >= parts_.size()) {
        return nullptr;
    }
    auto const found = std::ranges::find_if(parts_[array], [byte](Part const& part) {
        return part.first <= byte && byte < part.first + part.bytes;
    });
    return found == parts_[array].end() ? nullptr : &*found;
}

std::optional<std::size_t> PartsTable::place_of(Range const& range) const {
    auto const* const part = part_at(range.array, range.first);
    if (part == nullptr || range.bytes > part->first + part->bytes - range.first) {
        return std::nullopt;
    }
    return part->place + static_cast<std::size_t>(range.first - part->first);
}

std::uint64_t PartsTable::bytes_from(std::size_t array, std::uint64_t first) const {
    auto const* const part = part_at(array, first);
    return part == nullptr ? 0 : part->first + part->bytes - first;
}

std::shared_ptr<Reader const> reader_of_parts(std::filesystem::path name,
                                              std::vector<PartsTable> tables, FetchPart fetch) {
    auto record = tables.front().record();
    auto const layout = tables.front().layout();
    auto read = [name, tables = std::move(tables), fetch = std::move(fetch)](
                    std::size_t array, std::uint64_t first, std::span<std::byte> into) {
        while (!into.empty()) {
            std::size_t holder = 0;
            std::uint64_t there = 0;
            for (; holder < tables.size(); ++holder) {
                there = tables[holder].bytes_from(array, first);
                if (there > 0) {
                    break;
                }
            }
            if (there == 0) {
                throw Error(ExitCode::data, {concat(name.string(), " is incomplete"),
                                             concat("nobody has byte ", first, " of array ", array),
                                             "Resume from a checkpoint"});
            }
            auto const bytes = std::min({there, fetched_bytes, std::uint64_t{into.size()}});
            fetch(holder, {array, first, bytes}, into.first(bytes));
            into = into.subspan(bytes);
            first += bytes;
        }
    };
    return std::make_shared<Reader const>(std::move(name), std::move(record), layout,
                                          std::move(read));
}

} // namespace lockstep::checkpoint

#include "program/archive.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <caffe2/serialize/in_memory_adapter.h>
#include <caffe2/serialize/inline_container.h>
#include <cstring>

#include "record_checksums.hpp"

namespace lockstep::program {

namespace {

constexpr char const* how_to_save =
    "Save the model with lockstep_export.save(model, inputs, FILE) or torch.export.save";
constexpr std::string_view models = "models/";
constexpr std::string_view json_ending = ".json";

std::string content_of(std::filesystem::path const& path) {
    File::open_read(path); // its errors come first
    return read_text(path);
}

} // namespace

Archive::Archive(std::filesystem::path path)
    : path_(std::move(path)), content_(content_of(path_)), hash_(hash64(content_)) {
    try {
        reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(
            std::make_shared<caffe2::serialize::MemoryReadAdapter>(
                content_.data(), static_cast<off_t>(content_.size())));
        checksums_ = checksums_of(content_);
        if (reader_->hasRecord("archive_format") && text("archive_format") == "pt2") {
            records_ = reader_->getAllRecords();
            return;
        }
    } catch (c10::Error const&) {
        reader_ = nullptr; // what the file is instead is said below
    }
    auto const kind = kind_of_file(path_);
    if (kind.is_cut) {
        damaged(concat("it is ", kind.name));
    }
    if (kind.name.starts_with("a torch.export archive")) {
        damaged("its list of records cannot be read");
    }
    throw Error(ExitCode::data, {concat(path_.string(), " is not a torch.export archive (PT2)"),
                                 kind.name.empty() ? std::string("it holds no exported program")
                                                   : concat("it is ", kind.name),
                                 how_to_save});
}

Archive::~Archive() = default;

std::vector<std::string> Archive::programs() const {
    std::vector<std::string> names;
    for (auto const& record : records_) {
        if (record.starts_with(models) && record.ends_with(json_ending) &&
            record.size() > models.size() + json_ending.size()) {
            names.push_back(
                record.substr(models.size(), record.size() - models.size() - json_ending.size()));
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> Archive::records() const {
    auto names = records_;
    std::sort(names.begin(), names.end());
    return names;
}

bool Archive::has(std::string const& record) const {
    return std::find(records_.begin(), records_.end(), record) != records_.end();
}

template <class Take>
void Archive::take_record(std::string const& record, Take const& take) const {
    try {
        if (!reader_->hasRecord(record)) {
            damaged(concat("it has no record ", record));
        }
        // Records are stored as they are: a larger one would only fill the memory.
        if (reader_->getRecordSize(record) > content_.size()) {
            damaged(concat("its record ", record, " is larger than the file"));
        }
        auto const [data, size] = reader_->getRecord(record);
        require_checksum(record, {static_cast<char const*>(data.get()), size});
        take(static_cast<char const*>(data.get()), size);
    } catch (c10::Error const& error) {
        damaged(split(error.what_without_backtrace(), '\n').front());
    }
}

void Archive::require_checksum(std::string const& record, std::string_view bytes) const {
    auto const stored = checksums_.find(record);
    if (stored == checksums_.end() || checksum_of_record(bytes) != stored->second) {
        damaged(concat("the checksum of its record ", record, " does not match"));
    }
}

std::string Archive::text(std::string const& record) const {
    std::string result;
    take_record(record, [&](char const* data, std::size_t size) { result.assign(data, size); });
    return result;
}

nlohmann::json Archive::json(std::string const& record) const {
    constexpr int max_depth = 1000;
    return parsed_json(
        text(record),
        [&](std::string const& why) { damaged(concat("its record ", record, " ", why)); },
        max_depth);
}

at::Tensor Archive::bytes(std::string const& record) const {
    at::Tensor result;
    take_record(record, [&](char const* data, std::size_t size) {
        result = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
        if (size > 0) {
            std::memcpy(result.mutable_data_ptr(), data, size);
        }
    });
    return result;
}

void Archive::damaged(std::string const& why) const {
    throw Error(ExitCode::data, {concat(path_.string(), " is damaged"), why, how_to_save});
}

} // namespace lockstep::program

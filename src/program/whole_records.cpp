#include "program/whole_records.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/unpacked.hpp"
#include "lockstep/base/error.hpp"

#include <caffe2/serialize/in_memory_adapter.h>
#include <caffe2/serialize/inline_container.h>
#include <memory>

#include "record_checksums.hpp"

namespace lockstep::program {

void require_whole_records(std::filesystem::path const& file) {
    auto const content = read_text(file);
    auto const damaged = [&](std::string const& why) {
        return Error(ExitCode::data,
                     {concat(file.string(), " is damaged"), why,
                      "Copy the file again from its source, or save the model again"});
    };
    try {
        caffe2::serialize::PyTorchStreamReader reader(
            std::make_shared<caffe2::serialize::MemoryReadAdapter>(
                content.data(), static_cast<off_t>(content.size())));
        auto const checksums = [&] {
            try {
                return checksums_of(content);
            } catch (Error const& error) { // which is about exported programs
                throw damaged(error.text().why);
            }
        }();
        std::uint64_t left = max_unpacked(content.size());
        for (auto const& [record, checksum] : checksums) {
            bool whole = reader.hasRecord(record);
            if (whole) {
                auto const bytes = reader.getRecordSize(record);
                if (bytes > left) {
                    throw damaged(concat("its records up to ", record, " unpack to more than ",
                                         max_unpacked(content.size()),
                                         " bytes, but the file has only ", content.size()));
                }
                left -= bytes;
                auto const [data, size] = reader.getRecord(record);
                whole =
                    checksum_of_record({static_cast<char const*>(data.get()), size}) == checksum;
            }
            if (!whole) {
                throw damaged(concat("the checksum of its record ", record, " does not match"));
            }
        }
    } catch (c10::Error const&) {
        return; // LibTorch says what the file is instead
    }
}

std::string record_of(std::filesystem::path const& file, std::string const& record) {
    File::open_read(file); // its errors are clearer than LibTorch's
    try {
        caffe2::serialize::PyTorchStreamReader reader(file.string());
        if (!reader.hasRecord(record) ||
            reader.getRecordSize(record) > std::filesystem::file_size(file)) {
            return {};
        }
        auto const [data, size] = reader.getRecord(record);
        return {static_cast<char const*>(data.get()), size};
    } catch (c10::Error const&) {
        return {}; // loading it says what it is instead
    }
}

} // namespace lockstep::program

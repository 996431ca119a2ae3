#pragma once

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace caffe2::serialize {
class PyTorchStreamReader;
} // namespace caffe2::serialize

namespace lockstep::program {

/// A file that torch.export.save wrote (.pt2), with the contents that it had when it was opened.
/// Nothing in it is run, and its pickles are not read.
class Archive {
  public:
    /// Throws  Error 66 where there is no file; 65 where it is of another kind or damaged
    explicit Archive(std::filesystem::path path);
    ~Archive();
    Archive(Archive const&) = delete;
    Archive& operator=(Archive const&) = delete;

    std::filesystem::path const& path() const { return path_; }
    /// A hash of all bytes.
    std::uint64_t hash() const { return hash_; }
    /// The names of the programs that it holds, sorted.
    std::vector<std::string> programs() const;

    /// The names of all records, sorted.
    std::vector<std::string> records() const;
    bool has(std::string const& record) const;
    /// Throws  Error 65, as `bytes`, where there is no such record, or it is damaged
    std::string text(std::string const& record) const;
    /// Throws  Error 65 where there is no such record, or it is damaged, is not JSON or is
    ///         nested too deeply to be read by recursion
    nlohmann::json json(std::string const& record) const;
    std::uint64_t size() const noexcept { return content_.size(); }
    /// Shape  [bytes] of type uint8, in memory of its own
    at::Tensor bytes(std::string const& record) const;

    /// Throws  Error 65 that the file is damaged, and why.
    [[noreturn]] void damaged(std::string const& why) const;

  private:
    template <class Take>
    void take_record(std::string const& record, Take const& take) const;
    void require_checksum(std::string const& record, std::string_view bytes) const;

    std::filesystem::path path_;
    std::string content_;
    std::uint64_t hash_;
    std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
    std::vector<std::string> records_;
    std::map<std::string, std::uint32_t, std::less<>>
        checksums_; ///< of records, as they are stored
};

} // namespace lockstep::program

#include "program/tensors.hpp"

#include "base/text.hpp"
#include "base/unpacked.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/ops/as_strided.h>

#include "schema.hpp"

namespace lockstep::program {

namespace {

/// One folder of the archive: a list of names with the forms of their tensors, and their bytes.
class Folder {
  public:
    Folder(Archive const& archive, std::string path) : archive_(archive), path_(std::move(path)) {}

    void read(std::string const& list, Tensors& tensors) {
        auto const json = archive_.json(path_ + list);
        for (auto const& [name, entry] : json.at("config").items()) {
            if (entry.at("use_pickle").get<bool>()) {
                throw Error(ExitCode::usage,
                            {concat("tensor ", name, " of ", archive_.path().string(),
                                    " is stored as a pickle"),
                             "a pickle can run any code when it is loaded",
                             "Convert this object to a plain tensor before the export"});
            }
            auto const record = path_ + entry.at("path_name").get<std::string>();
            auto const& form = entry.at("tensor_meta");
            auto const place = concat(record, " ", form.at("dtype").dump(), form.at("sizes").dump(),
                                      form.at("strides").dump(), form.at("storage_offset").dump());
            auto const [tied, is_new] = by_place_.try_emplace(place);
            if (is_new) {
                tied->second = view(record, form);
            }
            tensors[name] = tied->second;
        }
    }

  private:
    at::Tensor view(std::string const& record, Json const& form) {
        auto const type = scalar_type_of(form.at("dtype"));
        static_cast<void>(layout_of(form.at("layout")));
        auto& bytes = bytes_[record];
        if (!bytes.defined()) {
            bytes = archive_.bytes(record);
        }
        auto const sizes = fixed_sizes(form.at("sizes"));
        auto const strides = fixed_sizes(form.at("strides"));
        auto const offset = size_of(form.at("storage_offset")).value;
        auto const size = static_cast<std::int64_t>(c10::elementSize(type));
        require_size(record, sizes, size);
        auto const elements = bytes.narrow(0, 0, bytes.size(0) / size * size).view(type);
        auto tensor =
            elements.as_strided(sizes, strides, offset).clone(); // throws beyond the bytes
        return tensor.set_requires_grad(form.at("requires_grad").get<bool>());
    }

    /// A view repeats its bytes where a stride is 0, so that a small file could fill the memory.
    void require_size(std::string const& record, std::vector<std::int64_t> const& sizes,
                      std::int64_t element) {
        auto left = static_cast<std::int64_t>(max_unpacked(archive_.size())) - unpacked_;
        auto bytes = element;
        for (auto const size : sizes) {
            if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) {
                archive_.damaged(concat("a tensor of its record ", record, " has invalid sizes"));
            }
        }
        if (bytes > left) {
            archive_.damaged(concat("the tensors of its records up to ", record, " have more than ",
                                    max_unpacked(archive_.size()), " bytes, but the file has only ",
                                    archive_.size()));
        }
        unpacked_ += bytes;
    }

    Archive const& archive_;
    std::string path_;
    std::int64_t unpacked_ = 0; ///< bytes of tensors
    std::map<std::string, at::Tensor> bytes_;
    Tensors by_place_;
};

} // namespace

Tensors read_tensors(Archive const& archive, std::string const& program) {
    Tensors tensors;
    try {
        Folder(archive, "data/weights/").read(program + "_weights_config.json", tensors);
        Folder(archive, "data/constants/").read(program + "_constants_config.json", tensors);
    } catch (Json::exception const& error) {
        archive.damaged(error.what());
    } catch (c10::OutOfMemoryError const&) {
        throw;
    } catch (c10::Error const& error) {
        archive.damaged(split(error.what_without_backtrace(), '\n').front());
    }
    return tensors;
}

} // namespace lockstep::program

#include "torch_errors.hpp"

#include "base/foreign_errors.hpp"
#include "base/text.hpp"
#include "base/vendors.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace lockstep::program {

namespace {

constexpr std::string_view tried = "ried to allocate ";

Vendor const* vendor_in(std::string_view text) {
    auto const found = std::ranges::find_if(vendors(), [&](Vendor const& vendor) {
        return text.find(vendor.failed) != std::string_view::npos;
    });
    return found == vendors().end() ? nullptr : &*found;
}

/// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of
/// which 1.00 GiB is free. ..."
Error full_device(std::string const& text) {
    auto const sentence = [&](std::size_t from) {
        return text.substr(from, text.find(". ", from) - from);
    };
    auto const at = text.find(tried);
    auto const gpu = text.find("GPU ", at == std::string::npos ? 0 : at);
    return Error(
        ExitCode::memory,
        {"out of device memory",
         concat(at == std::string::npos ? text
                                        : concat(sentence(at + tried.size()), " were needed"),
                "; ", gpu == std::string::npos ? "the device is full" : sentence(gpu)),
         memory_remedy()});
}

/// "DefaultCPUAllocator: not enough memory: you tried to allocate 4096 bytes. ..."
Error full_host(std::string const& text) {
    auto const at = text.find(tried);
    if (at == std::string::npos) {
        return out_of_memory(text);
    }
    auto const amount = text.substr(at + tried.size());
    char* end = nullptr;
    auto const bytes = std::strtoull(amount.c_str(), &end, 10);
    bool const in_bytes = std::string_view(end).starts_with(" bytes");
    return out_of_memory(
        concat(in_bytes ? bytes_text(bytes) : amount.substr(0, amount.find(". ")), " were needed"));
}

Error failed_device(std::string const& text) {
    auto const* const vendor = vendor_in(text);
    return Error(ExitCode::rank_lost,
                 {"a GPU failed", text,
                  concat("Start the run again. It resumes from its last checkpoint. If the GPU "
                         "fails again, exclude this host and have the GPU checked (dmesg, ",
                         vendor->tool, ")")});
}

/// A GPU says it some time after the kernel was launched, that an assertion has failed.
Error index_out_of_range(std::string const& text) {
    return Error(ExitCode::usage,
                 {"a kernel was given an index that is out of range", text,
                  "Check that each token and class in the data is below the size that the model "
                  "was built with (model.vocabulary, task.vocabulary or the number of classes). "
                  "With run.device = cpu, this message names the batch"});
}

/// A phrase that LibTorch's messages are known by.
struct Phrase {
    std::string_view text;
    bool of_runtime; ///< only where the text is that of a vendor's runtime
    Error (*meaning)(std::string const& text);
};

/// The only place where a failure is told by its words, for want of types: LibTorch throws
/// c10::Error alike for a full host, for an index, and, before 2.8, for what a vendor's runtime
/// says. Of several phrases, the first counts.
constexpr std::array phrases{
    Phrase{"Tried to allocate ", false, full_device},
    Phrase{"ECC", true, failed_device},
    Phrase{"NVLink", true, failed_device},
    Phrase{"nvlink", true, failed_device},
    Phrase{"ardware", true, failed_device},
    Phrase{"unspecified launch failure", true, failed_device},
    Phrase{"unknown error", true, failed_device},
    Phrase{"GPU is lost", true, failed_device},
    Phrase{"device-side assert", false, index_out_of_range},
    Phrase{"index out of range", false, index_out_of_range},
    Phrase{"tried to allocate ", false, full_host},
    Phrase{"out of memory", false, full_host},
    Phrase{"not enough memory", false, full_host},
};

/// The same for the exception that is being handled.
std::optional<Error> current_error_of_torch() {
    try {
        throw;
    } catch (c10::OutOfMemoryError const& error) {
        auto const text = first_line(error.what());
        auto const known = error_of_torch(text); // some builds throw it for a full host, too
        return known && known->code() == ExitCode::memory ? *known : full_device(text);
    } catch (std::exception const& error) {
        return error_of_torch(first_line(error.what()));
    }
}

/// As soon as the library that calls LibTorch is loaded.
[[maybe_unused]] bool const is_asked = [] {
    foreign_error() = current_error_of_torch;
    return true;
}();

} // namespace

std::optional<Error> error_of_torch(std::string const& text) {
    bool const of_runtime = vendor_in(text) != nullptr;
    auto const* const found = std::ranges::find_if(phrases, [&](Phrase const& phrase) {
        return (of_runtime || !phrase.of_runtime) && text.find(phrase.text) != std::string::npos;
    });
    return found == phrases.end() ? std::nullopt : std::optional(found->meaning(text));
}

} // namespace lockstep::program

#include "native_code.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace lockstep::program {

namespace {

/// A directory of this user's, removed with this object: a library is loaded from a file.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::error_code ignored;
        auto const parent = std::filesystem::temp_directory_path(ignored);
        auto name = (parent / "lockstep-step-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot make a directory in ", parent.string()),
                         std::strerror(errno),
                         "Set TMPDIR to a directory that can be written, on a file system whose "
                         "files may be run"});
        }
        path_ = name;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(TemporaryDirectory const&) = delete;
    TemporaryDirectory& operator=(TemporaryDirectory const&) = delete;

    std::filesystem::path const& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

} // namespace

NativeCode::NativeCode(Archive const& archive, std::string const& record) {
    TemporaryDirectory const directory;
    auto const library = directory.path() / "step.so";
    write_text_durably(library, archive.text(record + ".so"));
    if (archive.has(record + ".json")) {
        write_text_durably(directory.path() / "step.json", archive.text(record + ".json"));
    }
    try {
        runner_ =
            std::make_unique<torch::inductor::AOTIModelContainerRunnerCpu>(library.string(), 1);
    } catch (std::exception const& error) {
        throw Error(ExitCode::unavailable,
                    {concat("the compiled step of ", archive.path().string(), " cannot be loaded"),
                     split(error.what(), '\n').front(),
                     "Set TMPDIR to a file system whose files may be run, compile it again with "
                     "lockstep_export.compile(FILE), or set model.compiled = none"});
    }
}

NativeCode::~NativeCode() = default;

std::vector<at::Tensor> NativeCode::run(std::vector<at::Tensor> inputs) {
    return runner_->boxed_run(std::move(inputs));
}

} // namespace lockstep::program

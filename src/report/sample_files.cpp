#include "report/sample_files.hpp"

#include "base/own_directory.hpp"
#include "base/text.hpp"
#include "report/png.hpp"

namespace lockstep::report {

namespace {

/// The order of names is that of the samples.
std::string name_of(std::size_t sample) {
    return concat(zero_padded(static_cast<std::int64_t>(sample), 4), ".png");
}

class SampleFiles : public train::Observer {
  public:
    explicit SampleFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

    void on(train::Event const& event) override {
        auto const* const pictures = std::get_if<train::Pictures>(&event);
        if (pictures == nullptr) {
            return;
        }
        make_own_directory(directory_);
        for (std::size_t i = 0; i < pictures->samples.size(); ++i) {
            write_png(directory_ / name_of(i), pictures->samples[i]);
        }
    }

  private:
    std::filesystem::path directory_;
};

} // namespace

std::unique_ptr<train::Observer> make_sample_files(config::Deck const& deck) {
    return std::make_unique<SampleFiles>(std::filesystem::path(deck.run.directory) / "samples");
}

} // namespace lockstep::report

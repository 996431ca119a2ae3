#include "base/file.hpp"
#include "base/text.hpp"
#include "data/verify.hpp"
#include "h5/element_type.hpp"
#include "import/log_mel.hpp"
#include "import/speech_source.hpp"

#include <cmath>
#include <complex>
#include <numbers>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::string little(std::uint32_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
        text.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
    }
    return text;
}

/// A WAV file of 16-bit values: a tone of 1 kHz.
std::string wav(std::uint32_t values, std::uint32_t rate = 16000, std::uint32_t channels = 1) {
    std::string data;
    for (std::uint32_t i = 0; i < values; ++i) {
        auto const value = std::lround(8192 * std::sin(2 * std::numbers::pi * 1000 * i / rate));
        for (std::uint32_t c = 0; c < channels; ++c) {
            data += little(static_cast<std::uint32_t>(value), 2);
        }
    }
    auto const bytes = static_cast<std::uint32_t>(data.size());
    return "RIFF" + little(36 + bytes, 4) + "WAVEfmt " + little(16, 4) + little(1, 2) +
           little(channels, 2) + little(rate, 4) + little(rate * channels * 2, 4) +
           little(channels * 2, 2) + little(16, 2) + "data" + little(bytes, 4) + data;
}

template <class T>
std::vector<T> values_of(std::filesystem::path const& path, std::string const& name,
                         h5::Type type) {
    auto const file = h5::File::open(path);
    std::vector<T> values(h5::elements(file.info(name).shape));
    file.read(name, type, values);
    return values;
}

std::vector<std::int64_t> whole(std::filesystem::path const& path, std::string const& name) {
    return values_of<std::int64_t>(path, name, h5::Type::i64);
}

} // namespace

TEST_CASE("log-mel features are those of the defining sums") {
    LogMelOptions const options{.rate = 8000, .bands = 20};
    std::vector<float> x;
    for (int i = 0; i < 400; ++i) {
        x.push_back(static_cast<float>(std::sin(0.3 * i) + 0.5 * std::cos(0.011 * i * i)));
    }
    LogMel const features(options);
    auto const found = features(x);
    std::size_t const width = 200;
    std::size_t const hop = 80;
    std::size_t const size = 256;
    REQUIRE(found.size() == 20 * (1 + (400 - width) / hop));
    auto const hertz = [](double m) { return 700 * (std::pow(10, m / 2595) - 1); };
    double const top = 2595 * std::log10(1 + 4000.0 / 700);
    for (std::size_t t = 0; t < found.size() / 20; ++t) {
        std::vector<double> power;
        for (std::size_t k = 0; k <= size / 2; ++k) {
            std::complex<double> sum = 0;
            for (std::size_t n = 0; n < width; ++n) {
                auto const angle = 2 * std::numbers::pi * static_cast<double>(n);
                auto const window = 0.5 - 0.5 * std::cos(angle / static_cast<double>(width));
                sum += window * double{x[t * hop + n]} *
                       std::polar(1.0, -angle * static_cast<double>(k) / static_cast<double>(size));
            }
            power.push_back(std::norm(sum));
        }
        for (std::size_t b = 0; b < 20; ++b) {
            double energy = 0;
            double const left = hertz(top * static_cast<double>(b) / 21);
            double const center = hertz(top * static_cast<double>(b + 1) / 21);
            double const right = hertz(top * static_cast<double>(b + 2) / 21);
            for (std::size_t k = 0; k <= size / 2; ++k) {
                double const f = static_cast<double>(k) * 8000 / static_cast<double>(size);
                energy += std::max(0.0, std::min((f - left) / (center - left),
                                                 (right - f) / (right - center))) *
                          power[k];
            }
            CHECK(found[t * 20 + b] == Approx(std::log(std::max(energy, 1e-10))).epsilon(1e-6));
        }
    }
    CHECK(features.frames(199) == 0);
    CHECK_THROWS_AS(LogMel({.rate = 8000, .bands = 400}), Error);
}

TEST_CASE("recordings with transcripts become ragged features and symbols") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "a.wav", wav(800));
    write_text_durably(scratch / "b.wav", wav(4000, 16000, 2));
    write_text_durably(scratch / "text.data", "( a \"Да,  ад!\" )\n( b \"да\" )\n");
    SpeechImport options{.source = scratch.path(),
                         .transcripts = scratch / "text.data",
                         .lowercase = true,
                         .drop = ",!"};
    auto const report = test::import_to(scratch / "set.h5", *speech_source(options));
    CHECK(report.sets.at(0).samples == 2);
    auto const out = scratch / "set.h5";
    CHECK(verify(out).empty());
    auto const file = h5::File::open(out);
    CHECK(file.info("inputs").shape == h5::Shape{3 + 23, 40});
    CHECK(whole(out, "inputs_offsets") == std::vector<std::int64_t>{0, 3, 26});
    CHECK(file.texts_attribute("/", "classes") == std::vector<std::string>{" ", "а", "д"});
    CHECK(whole(out, "targets") == std::vector<std::int64_t>{2, 1, 0, 1, 2, 2, 1});
    CHECK(whole(out, "targets_offsets") == std::vector<std::int64_t>{0, 5, 7});
    auto const features = values_of<float>(out, "inputs", h5::Type::f32);
    // Two equal channels are one: the same tone has the same features.
    CHECK(features[3 * 40 + 7] == Approx(features[7]));

    SECTION("raw recordings") {
        options.raw = true;
        test::import_to(scratch / "raw.h5", *speech_source(options));
        auto const raw = values_of<float>(scratch / "raw.h5", "inputs", h5::Type::f32);
        REQUIRE(raw.size() == 4800);
        CHECK(raw[4] == 0.25F); // a quarter of a period of a tone of a quarter of full scale
    }
    SECTION("an unknown symbol is told with its file, and skipped on demand") {
        options.symbols = "ад";
        auto const source = speech_source(options);
        auto const error = test::error_of([&] { test::import_to(scratch / "x.h5", *source); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "a.wav"));
        CHECK(test::says(error, "unknown symbol \" \""));
        auto const report = test::import_to(scratch / "x.h5", *source, {.skip_bad = true});
        CHECK(report.skipped.size() == 1);
        CHECK(whole(scratch / "x.h5", "targets") == std::vector<std::int64_t>{1, 0});
    }
}

TEST_CASE("phones of a table, with speakers and sets") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "a.wav", wav(800));
    write_text_durably(scratch / "b.wav", wav(800));
    write_text_durably(scratch / "text.tsv", "file\tphones\tspeaker\tset\n"
                                             "a.wav\tpau k ay\tann\ttrain\n"
                                             "b.wav\tk  pau\tbo\ttest\n");
    SpeechImport const options{.source = scratch.path(),
                               .transcripts = scratch / "text.tsv",
                               .split_by = "speaker",
                               .text = "phones",
                               .words = true};
    auto const source = speech_source(options);
    CHECK(source->form().class_names == std::vector<std::string>{"ay", "k", "pau"});
    CHECK(source->group(1) == "bo");
    test::import_to(scratch / "out", *source);
    CHECK(whole(scratch / "out/test.h5", "targets") == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("recordings in a folder for each class have one label") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch / "tree/no");
    std::filesystem::create_directories(scratch / "tree/yes");
    write_text_durably(scratch / "tree/no/a.wav", wav(800));
    write_text_durably(scratch / "tree/yes/a.wav", wav(900));
    auto const report =
        test::import_to(scratch / "set.h5", *speech_source({.source = scratch / "tree"}));
    CHECK(report.sets.at(0).class_counts == std::vector<std::int64_t>{1, 1});
    CHECK(whole(scratch / "set.h5", "targets") == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("recordings that are cut short, of another rate, too short or none at all") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch / "tree/x");
    write_text_durably(scratch / "tree/x/a.wav", wav(800));
    auto const why = [&](std::string const& bytes) {
        write_text_durably(scratch / "tree/x/b.wav", bytes);
        auto const error = test::error_of([&] {
            test::import_to(scratch / "set.h5", *speech_source({.source = scratch / "tree"}));
        });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "b.wav"));
        return error.text().why;
    };
    CHECK(why(wav(800).substr(0, 1000)).find("cut short") != std::string::npos);
    CHECK(why(wav(800, 8000)).find("8000 Hz") != std::string::npos);
    CHECK(why(wav(100)).find("fewer than a window") != std::string::npos);
    CHECK_FALSE(why("RIFF and nothing else").empty());
}

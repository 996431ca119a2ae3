#include "base/file.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "checkpoint/model_file.hpp"
#include "federate/coordinator.hpp"
#include "federate/deck_keys.hpp"
#include "federate/report.hpp"
#include "federate/site.hpp"
#include "federate/sound_charter.hpp"

#include <array>
#include <string>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"
#include "long_form.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

int tries() {
    return test::is_long() ? 500 : 40;
}

/// Draws that depend only on their number.
class Draw {
  public:
    explicit Draw(int number) : number_(static_cast<std::uint64_t>(number)) {}
    std::size_t below(std::size_t end) {
        return static_cast<std::size_t>(random_key(7, Stream::order, {number_, count_++}) % end);
    }
    template <class Values>
    auto const& of(Values const& values) {
        return values[below(values.size())];
    }

  private:
    std::uint64_t number_;
    std::uint64_t count_ = 0;
};

std::string const long_number(5000, '7');
std::vector<std::string> const odd_values{"0",
                                          "-1",
                                          "1",
                                          "2",
                                          "255",
                                          "256",
                                          "1e999",
                                          "-1e999",
                                          "1e308",
                                          "1e-320",
                                          "NaN",
                                          "null",
                                          "true",
                                          "1.5",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "-9223372036854775809",
                                          "18446744073709551615",
                                          "\"\"",
                                          "\"x\"",
                                          "\"../../x\"",
                                          "\"a\\nb\"",
                                          "\"\\u0000\"",
                                          "\"\xff\"",
                                          "[]",
                                          "[1]",
                                          "{}",
                                          "{\"a\": 1}",
                                          "[[[[[[[[]]]]]]]]",
                                          "fedavg",
                                          "\"fedadam\"",
                                          "\"scaffold\"",
                                          "prv",
                                          "\"prv\"",
                                          "none",
                                          "/",
                                          "..",
                                          "coordinator",
                                          "plugin:/x.so:y",
                                          "10 %",
                                          "2:4",
                                          long_number};

/// Changes a text a little, somewhere: a word of it, a line, or some bytes.
std::string mutated(std::string text, Draw& draw) {
    for (auto left = 1 + draw.below(3); left > 0 && !text.empty(); --left) {
        auto const at = draw.below(text.size());
        switch (draw.below(6)) {
        case 0:
            text[at] = static_cast<char>(draw.below(256));
            break;
        case 1:
            text.erase(at, 1 + draw.below(40));
            break;
        case 2:
            text.insert(at, draw.of(odd_values));
            break;
        case 3: {
            auto const line = text.rfind('\n', at);
            auto const end = text.find('\n', at);
            text.insert(line == std::string::npos ? 0 : line, text.substr(at, end - at));
            break;
        }
        default: { // a word becomes another
            constexpr char const* between = " :,\n";
            auto const before = text.find_last_of(between, at);
            auto const first = before == std::string::npos ? 0 : before + 1;
            auto const last = std::min(text.find_first_of(between, first), text.size());
            text.replace(first, last - first, draw.of(odd_values));
        }
        }
    }
    return text;
}

struct Founded {
    test::ScratchDir scratch;
    PrivateKey key = PrivateKey::open_or_make(scratch / "keys/coordinator", coordinator_name);
    PrivateKey own = PrivateKey::open_or_make(scratch / "keys/site", "site");
    ModelVector first;

    explicit Founded(Charter charter) {
        std::array<float, 6> const weights{1, 2, 3, 4, 5, 6};
        checkpoint::write_model(
            scratch / "first.h5",
            {{"model/layer/weight", h5::Type::f32, {2, 3}, std::as_bytes(std::span(weights))}}, {});
        first = ModelVector::read(scratch / "first.h5");
        charter.id = "0123";
        charter.model = first.fingerprint();
        Federation::found(scratch / "federation", charter, first, key);
    }

    std::filesystem::path directory() const { return scratch / "federation"; }

    /// A charter with this text, signed by the coordinator.
    void sign_charter(std::string const& text) const {
        Message message({"0123", 0, phase::charter, coordinator_name, first.fingerprint()});
        message.add_text("charter", text);
        message.add_text("first", first.digest());
        message.write(directory() / "charter.h5", key.signing_key());
    }
};

/// All that a site does with what a coordinator has signed ends well, or with an error of ours.
template <class Work>
void require_told(Work const& work, std::string const& of) {
    INFO(of.substr(0, 3000));
    ExitCode code = ExitCode::ok;
    CHECK_NOTHROW(code = test::code_of(work));
    CHECK((code == ExitCode::ok || code == ExitCode::usage || code == ExitCode::data ||
           code == ExitCode::no_input));
}

} // namespace

TEST_CASE("mutated charters with a good signature are refused, or taken part in") {
    Charter charter;
    charter.threshold = 2;
    charter.clip = 1;
    charter.noise = 1;
    charter.expected_sites = 4;
    charter.budget = 1000;
    charter.files = "model.file 0123";
    charter.classes = "a\nb";
    charter.deck = config::to_text({});
    Founded const world(charter);
    auto const text = Federation(world.directory()).charter().text();
    for (int number = 0; number < tries(); ++number) {
        Draw draw(number);
        auto const changed = mutated(text, draw);
        world.sign_charter(changed);
        require_told(
            [&] {
                Federation const federation(world.directory());
                require_sound(federation.charter());
                static_cast<void>(shared_deck(federation.charter(), "the deck"));
                static_cast<void>(keys_of_code(federation.charter()));
                static_cast<void>(report(federation));
                Site(federation, world.own, world.scratch / "local").join();
                Site(federation, world.own, world.scratch / "local").proceed(10);
            },
            changed);
        std::filesystem::remove(world.directory() / "sites/site.h5");
        write_text_durably(world.scratch / "keys/site.journal", "");
    }
}

TEST_CASE("mutated lists of sites with a good signature are refused, or answered") {
    for (int number = 0; number < tries(); ++number) {
        Draw draw(number);
        Charter charter;
        charter.threshold = draw.below(2) == 0 ? 0 : 2;
        Founded const world(charter);
        Federation const federation(world.directory());
        auto const other = PrivateKey::open_or_make(world.scratch / "keys/other", "other");
        for (auto const* const key : {&world.own, &other}) {
            Site(federation, *key, world.scratch / key->name()).join();
        }
        Coordinator const coordinator(federation, world.key);
        coordinator.admission().accept({"all"});
        coordinator.advance(Coordinator::Waiting::for_all);
        for (auto const* const key : {&world.own, &other}) {
            Site(federation, *key, world.scratch / key->name()).proceed(10);
        }
        coordinator.advance(Coordinator::Waiting::for_all);
        auto const good = federation.read_of_coordinator(1, phase::roster);
        Message list(good.binding());
        auto const changed = mutated(good.text("members"), draw);
        list.add_text("members", changed);
        list.add_text("sites",
                      draw.below(3) == 0 ? mutated(good.text("sites"), draw) : good.text("sites"));
        list.write(federation.file(good.binding()), world.key.signing_key());
        require_told(
            [&] {
                Site const site(federation, world.own, world.scratch / "site");
                auto const standing = site.proceed(10);
                if (standing.need == Need::training) {
                    site.require_announced(1, 10);
                    site.send_update(1, federation.first_model(1), 1);
                }
                static_cast<void>(report(federation));
                coordinator.advance(Coordinator::Waiting::for_nobody);
            },
            changed);
    }
}

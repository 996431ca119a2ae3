#include "base/file.hpp"
#include "base/text.hpp"
#include "checkpoint/model_file.hpp"
#include "federate/change.hpp"
#include "federate/coordinator.hpp"
#include "federate/deck_files.hpp"
#include "federate/noise.hpp"
#include "federate/report.hpp"
#include "federate/site.hpp"
#include "federate/spent.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <sys/stat.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "long_form.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

constexpr std::size_t values = 6;
constexpr double rates = 0.5; ///< sum of a round's learning rates

using Names = std::set<std::string>;

/// A federation whose sites "train" by adding a number of their own.
struct World {
    test::ScratchDir scratch;
    std::unique_ptr<PrivateKey> key;
    std::unique_ptr<Federation> federation;
    std::vector<std::string> names;

    std::map<std::string, std::int64_t> changed{}; ///< samples of sites whose data have changed

    World(Charter charter, std::size_t sites) {
        std::array<float, values> const weights{1, 2, 3, 4, 5, 6};
        checkpoint::write_model(
            scratch / "first.h5",
            {{"model/layer/weight", h5::Type::f32, {2, 3}, std::as_bytes(std::span(weights))}}, {});
        auto const first = ModelVector::read(scratch / "first.h5");
        charter.id = "0123";
        charter.model = first.fingerprint();
        key = std::make_unique<PrivateKey>(
            PrivateKey::open_or_make(scratch / "keys/coordinator", coordinator_name));
        federation = std::make_unique<Federation>(
            Federation::found(scratch / "federation", charter, first, *key));
        for (std::size_t i = 0; i < sites; ++i) {
            names.push_back(concat("site", i));
            Site(*federation, key_of(names[i]), {}).join();
        }
        coordinator().admission().accept({"all"});
    }

    Coordinator coordinator() const { return Coordinator(*federation, *key); }
    PrivateKey key_of(std::string const& name) const {
        return PrivateKey::open_or_make(scratch / ("keys/" + name), name);
    }
    std::int64_t samples_of(std::string const& name) const {
        auto const found = changed.find(name);
        return found != changed.end() ? found->second : 10 * (name.back() - '0' + 1);
    }

    ModelVector trained(std::string const& name, std::int64_t round) const {
        auto model = federation->first_model(round);
        for (std::size_t i = 0; i < values; ++i) {
            model.values[i] += 0.25F * static_cast<float>(name.back() - '0' + 1) +
                               0.01F * static_cast<float>(i) * static_cast<float>(round);
        }
        return model;
    }

    /// All sites but those of `away` do what is asked of them now.
    void answer(Names const& away = {}) const {
        for (auto const& name : names) {
            if (!away.contains(name)) {
                auto const own = key_of(name);
                Site const site(*federation, own, scratch / ("local/" + name));
                auto const standing = site.proceed(samples_of(name));
                if (standing.need == Need::training) {
                    if (federation->charter().has_controls()) {
                        site.write_correction(standing.round);
                    }
                    site.send_update(standing.round, trained(name, standing.round), rates);
                    site.proceed(samples_of(name));
                }
            }
        }
    }
    Progress advance(bool close = false) const {
        return coordinator().advance(close ? Coordinator::Waiting::for_nobody
                                           : Coordinator::Waiting::for_all);
    }

    /// The mean of the changes of `counted`, in fixed point over the sites of `roster`.
    std::vector<float> expected(Names const& roster_names, Names const& counted) const {
        Roster roster;
        for (auto const& name : roster_names) {
            roster.members.push_back({name, {}, {}, samples_of(name)});
        }
        auto const& charter = federation->charter();
        auto const first = ModelVector::read(federation->global_file(0));
        auto const point = roster.fixed_point(charter);
        std::vector<std::uint32_t> sum(values, 0);
        double weights = 0;
        for (auto const& name : counted) {
            auto const weight = roster.weight_of(*roster.find(name), charter);
            auto const change = encoded_change(first, trained(name, 1), {point, weight, 0});
            for (std::size_t i = 0; i < values; ++i) {
                sum[i] += change.words[i];
            }
            weights += weight;
        }
        std::vector<float> result;
        for (std::size_t i = 0; i < values; ++i) {
            result.push_back(static_cast<float>(first.values[i] + point.decoded(sum[i]) / weights));
        }
        return result;
    }
    std::vector<float> global(std::int64_t round) const {
        return ModelVector::read(federation->global_file(round)).values;
    }
};

Charter charter_of(std::int64_t threshold) {
    Charter charter;
    charter.threshold = threshold;
    charter.min_sites = std::max<std::int64_t>(2, threshold);
    charter.rounds = 2;
    return charter;
}

/// A file's first line is what all sites have in common.
void read_graph(std::string const& file,
                std::function<void(std::string const&, std::string_view)> const& take) {
    auto const text = read_text(file);
    take("graph", std::string_view(text).substr(0, text.find('\n')));
}

/// Sites that stop answering, before each of the phases.
struct Dropouts {
    Names before_announce, before_shares, before_update, before_unmask;
};

/// Runs one round; whether it came to a result.
bool run_round(World const& world, Dropouts const& out) {
    bool const secure = world.federation->charter().is_secure();
    auto const before = world.federation->current_round();
    Names away = out.before_announce;
    auto const next = [&](Names const& more) {
        world.answer(away);
        away.insert(more.begin(), more.end());
        return test::code_of([&] { world.advance(true); }) == ExitCode::ok;
    };
    world.advance();
    if (!next(out.before_shares) || (secure && !next(out.before_update))) {
        return false;
    }
    if (!secure) {
        away.insert(out.before_update.begin(), out.before_update.end());
    }
    if (!next(out.before_unmask)) {
        return false;
    }
    if (secure && !next({})) {
        return false;
    }
    return world.federation->current_round() == before + 1;
}

Names without(std::vector<std::string> const& all, Names const& left_out) {
    Names rest;
    for (auto const& name : all) {
        if (!left_out.contains(name)) {
            rest.insert(name);
        }
    }
    return rest;
}

} // namespace

TEST_CASE("a round's result is the plain fixed-point mean of those that count, with 0 to n - t "
          "dropouts at every phase, and beyond it is refused") {
    constexpr std::size_t sites = 4;
    constexpr std::int64_t threshold = 2;
    std::size_t const least = test::is_long() ? 0 : sites - threshold;
    for (std::size_t phase = 0; phase < 4; ++phase) {
        for (std::size_t dropouts = least; dropouts <= sites - threshold + 1; ++dropouts) {
            World const world(charter_of(threshold), sites);
            Names out;
            for (std::size_t i = 0; i < dropouts; ++i) {
                out.insert(world.names[(i + phase) % sites]);
            }
            Dropouts const dropped{phase == 0 ? out : Names{}, phase == 1 ? out : Names{},
                                   phase == 2 ? out : Names{}, phase == 3 ? out : Names{}};
            bool const enough = dropouts <= sites - threshold;
            INFO("phase " << phase << ", " << dropouts << " dropouts");
            CHECK(run_round(world, dropped) == enough);
            if (enough) {
                auto const roster = without(world.names, dropped.before_announce);
                auto counted = without(world.names, phase < 3 ? out : Names{});
                CHECK(world.global(1) == world.expected(roster, counted));
            } else {
                CHECK(world.federation->current_round() == 1);
                world.coordinator().abandon();
                CHECK(world.federation->current_round() == 2);
                CHECK(world.global(1) == world.global(0));
            }
        }
    }
}

TEST_CASE("without secure aggregation the same numbers come out") {
    World const plain(charter_of(0), 3);
    World const secure(charter_of(2), 3);
    CHECK(run_round(plain, {}));
    CHECK(run_round(secure, {}));
    CHECK(plain.global(1) == secure.global(1));
    CHECK(plain.global(1) ==
          plain.expected({"site0", "site1", "site2"}, {"site0", "site1", "site2"}));
}

TEST_CASE("nothing is counted twice, however often a step is repeated") {
    World const world(charter_of(2), 3);
    world.advance();
    for (int step = 0; step < 4; ++step) {
        for (int again = 0; again < 3; ++again) {
            world.answer();
        }
        world.advance();
        world.advance();
    }
    CHECK(world.federation->current_round() == 2);
    CHECK(world.global(1) ==
          world.expected({"site0", "site1", "site2"}, {"site0", "site1", "site2"}));
}

TEST_CASE("an update that is exchanged, of another site or round, or changed, does not count") {
    World const world(charter_of(0), 3);
    world.advance();
    world.answer();
    world.advance();
    world.answer();
    auto const update = [&](std::string const& site) {
        return world.federation->file(world.federation->binding(1, phase::update, site));
    };
    auto const own = read_text(update("site0"));
    write_text_durably(update("site0"), read_text(update("site1"))); // swapped
    CHECK(world.advance().waiting == std::vector<std::string>{"site0"});
    std::filesystem::remove(update("site0"));
    std::filesystem::create_directory(update("site0")); // no file at all
    CHECK(world.advance().waiting == std::vector<std::string>{"site0"});
    std::filesystem::remove(update("site0"));
    auto changed = own;
    changed[changed.size() / 2] ^= 1;
    write_text_durably(update("site0"), changed);
    auto const progress = world.advance();
    CHECK(progress.waiting == std::vector<std::string>{"site0"});
    CHECK(progress.lines.front().find("was refused") != std::string::npos);
    world.answer(); // the site sends it again
    world.advance();
    CHECK(world.federation->current_round() == 2);
    // Replayed into the next round.
    world.advance();
    world.answer();
    world.advance();
    make_directories(
        world.federation->file(world.federation->binding(2, phase::update, "site0")).parent_path());
    write_text_durably(world.federation->file(world.federation->binding(2, phase::update, "site0")),
                       own);
    world.answer({"site0"});
    CHECK(world.advance().waiting == std::vector<std::string>{"site0"});
}

TEST_CASE("an update that is too large, or not as long as the model, does not count") {
    auto charter = charter_of(0);
    charter.clip = 1;
    World const world(charter, 2);
    world.advance();
    world.answer();
    world.advance();
    world.answer({"site1"});
    auto const own = world.key_of("site1");
    for (auto const& [words, why] :
         {std::pair{std::vector<std::uint32_t>(values, 200000000U), "beyond the federation's clip"},
          {std::vector<std::uint32_t>(values, 0x7fffffffU), "beyond the federation"},
          {std::vector<std::uint32_t>(values - 1, 0), "it has 5 values"}}) {
        Message message(world.federation->binding(1, phase::update, "site1"));
        message.add_words("change", words);
        world.federation->write(message, own);
        auto const progress = world.advance();
        CHECK(progress.waiting == std::vector<std::string>{"site1"});
        REQUIRE(!progress.lines.empty());
        CHECK(progress.lines.front().find(why) != std::string::npos);
    }
}

TEST_CASE("a site sends nothing that is not finite, clips the norm, and says one thing per round") {
    auto charter = charter_of(0);
    charter.clip = 0.5;
    World const world(charter, 2);
    world.advance();
    world.answer();
    world.advance();
    auto const own = world.key_of("site0");
    Site const site(*world.federation, own, world.scratch / "local/site0");
    auto bad = world.trained("site0", 1);
    bad.values[2] = std::numeric_limits<float>::quiet_NaN();
    CHECK(test::code_of([&] { site.send_update(1, bad); }) == ExitCode::data);
    site.send_update(1, world.trained("site0", 1));
    auto other = world.trained("site0", 1);
    other.values[0] += 1;
    CHECK(test::code_of([&] { site.send_update(1, other); }) == ExitCode::data);
    std::filesystem::remove(
        world.federation->file(world.federation->binding(1, phase::update, "site0")));
    CHECK(test::code_of([&] { site.send_update(1, other); }) == ExitCode::data);
    site.send_update(1, world.trained("site0", 1)); // the update that was lost
    auto const sent = world.federation->read_of_site(1, phase::update, "site0").words("change");
    auto const roster =
        Roster::of_text(world.federation->read_of_coordinator(1, phase::roster).text("members"));
    double squares = 0;
    for (auto const word : sent) {
        auto const value = roster.fixed_point(world.federation->charter()).decoded(word);
        squares += std::pow(value / roster.weight_of(*roster.find("site0"), charter), 2);
    }
    CHECK(std::sqrt(squares) <= 0.5);
    CHECK(std::sqrt(squares) > 0.4999);
}

TEST_CASE("who is not accepted takes no part, and a coordinator's key is needed to coordinate") {
    World const world(charter_of(0), 2);
    auto const stranger = world.key_of("stranger");
    Site const site(*world.federation, stranger, world.scratch / "local/stranger");
    site.join();
    CHECK(site.proceed(1).words.find("has not accepted") != std::string::npos);
    CHECK(test::code_of([&] { Coordinator(*world.federation, world.key_of("site0")); }) ==
          ExitCode::usage);
    CHECK(test::code_of([&] { world.coordinator().admission().accept({"abcd"}); }) ==
          ExitCode::no_input);
    // Somebody takes the name of an accepted site.
    auto const impostor = PrivateKey::open_or_make(world.scratch / "impostor", "site0");
    CHECK(test::code_of([&] { Site(*world.federation, impostor, {}).join(); }) ==
          ExitCode::cannot_create);
    Message const card(world.federation->binding(0, phase::card, "site0"));
    card.write(world.scratch / "federation/sites/site0.h5", impostor.signing_key());
    CHECK(test::code_of([&] { world.coordinator().admission().accept({"all"}); }) ==
          ExitCode::data);
}

TEST_CASE("a second list of survivors is not answered, and too short a one neither") {
    World const world(charter_of(2), 3);
    world.advance();
    for (int i = 0; i < 3; ++i) {
        world.answer();
        world.advance();
    }
    auto const own = world.key_of("site0");
    Site const site(*world.federation, own, world.scratch / "local/site0");
    auto const said =
        world.federation->file(world.federation->binding(1, phase::survivors, coordinator_name));
    auto const first = read_text(said);
    auto const refused = [&](char const* names, char const* why) {
        Message other(world.federation->binding(1, phase::survivors, coordinator_name));
        other.add_text("sites", names);
        other.add_text("digests", "");
        world.federation->write(other, *world.key);
        auto const error = test::error_of([&] { site.proceed(1); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, why));
    };
    refused("site0", "needs at least 2");
    refused("site0\nstranger", "have not shared their keys");
    write_text_durably(said, first);
    world.answer();
    std::filesystem::remove(
        world.federation->file(world.federation->binding(1, phase::unmask, "site0")));
    refused("site0\nsite1", "");
}

TEST_CASE("a site takes part in the federation that it has joined, and in no other") {
    World const world(charter_of(0), 2);
    world.advance();
    auto const file = world.scratch / "federation/charter.h5";
    auto const good = read_text(file);
    auto const own = world.key_of("site0");
    auto const refused = [&](std::string const& id, PrivateKey const& signer,
                             std::int64_t threshold) {
        auto charter = world.federation->charter();
        charter.id = id;
        charter.threshold = threshold;
        Message message({charter.id, 0, phase::charter, coordinator_name, charter.model});
        message.add_text("charter", charter.text());
        message.add_text(
            "first", Message::read_of_unknown(file, {"", 0, phase::charter, coordinator_name, ""})
                         .text("first"));
        message.write(file, signer.signing_key());
        Federation const other(world.scratch / "federation");
        Message sites(other.binding(0, phase::accepted, coordinator_name));
        sites.add_text("sites", concat("site0 ", hex_text(own.signing_key().public_key())));
        auto const list = other.file(sites.binding());
        auto const accepted = read_text(list);
        sites.write(list, signer.signing_key());
        std::filesystem::remove(other.file(other.binding(1, phase::plan, coordinator_name)));
        CHECK(test::code_of([&] { Site(other, own, world.scratch / "local").proceed(1); }) ==
              ExitCode::data);
        write_text_durably(list, accepted);
        write_text_durably(file, good);
    };
    auto const stranger = world.key_of("stranger");
    refused("4567", stranger, 0);   // a federation of its own in the place of ours
    refused("0123", stranger, 0);   // the same one, with another coordinator
    refused("0123", *world.key, 2); // or with other rules
    world.advance();
    for (int i = 0; i < 2; ++i) {
        world.answer();
        world.advance();
    }
    CHECK(world.federation->current_round() == 2);
}

TEST_CASE("a removed site is not waited for, and is drawn again only if it is accepted again") {
    auto charter = charter_of(2);
    charter.rounds = 4;
    World const world(charter, 4);
    auto const drawn = [&](std::int64_t round) {
        return lines_in(world.federation->read_of_coordinator(round, phase::plan).text("sites"));
    };
    auto const finish_round = [&](Names const& away) {
        for (int phase = 0; phase < 4; ++phase) {
            world.answer(away);
            world.advance();
        }
    };
    world.advance();
    world.answer();
    world.advance(); // site3 is in the roster, and is lost then
    world.answer({"site3"});
    CHECK(world.advance().waiting == std::vector<std::string>{"site3"});
    CHECK(test::code_of([&] { world.coordinator().admission().remove({"stranger"}); }) ==
          ExitCode::no_input);
    CHECK(world.coordinator().admission().remove({"site3"}) ==
          std::vector<std::string>{"removed site3"});
    CHECK(world.coordinator().admission().remove({"site3"}).empty());
    CHECK(world.advance().waiting == std::vector<std::string>{"site0", "site1", "site2"});
    finish_round({"site3"});
    REQUIRE(world.federation->current_round() == 2);
    CHECK(drawn(2) == std::vector<std::string>{"site0", "site1", "site2"});
    CHECK(world.federation->read_of_coordinator(2, phase::plan).text("accepted") == "3");
    auto const own = world.key_of("site3");
    Site const site(*world.federation, own, world.scratch / "local/site3");
    CHECK(site.proceed(1).words.find("has removed this site") != std::string::npos);
    world.coordinator().admission().accept({"all"});
    finish_round({});
    CHECK(drawn(3).size() == 3);
    world.coordinator().admission().accept({hex_text(own.signing_key().public_key())});
    finish_round({});
    REQUIRE(world.federation->current_round() == 4);
    CHECK(drawn(4).size() == 4);
}

TEST_CASE("a site that is removed while others train is a dropout, whether it has sent or not") {
    bool const sent = GENERATE(false, true);
    for (std::int64_t const threshold : {0, 2}) {
        World const world(charter_of(threshold), 3);
        world.advance();
        for (int phase = 0; phase < (threshold > 0 ? 2 : 1); ++phase) {
            world.answer();
            world.advance();
        }
        world.answer(sent ? Names{"site0"} : Names{"site0", "site2"});
        world.coordinator().admission().remove({"site2"});
        auto const own = world.key_of("site2");
        Site const site(*world.federation, own, world.scratch / "local/site2");
        auto const standing = site.proceed(1);
        CHECK(standing.need == Need::nothing);
        CHECK(standing.words.find("has removed this site") != std::string::npos);
        CHECK(world.advance().waiting == std::vector<std::string>{"site0"});
        world.answer({"site2"});
        auto const lines = world.advance().lines;
        REQUIRE(!lines.empty());
        CHECK(lines[0].find("removed: site2") != std::string::npos);
        world.answer({"site2"});
        world.advance();
        REQUIRE(world.federation->current_round() == 2);
        CHECK(world.global(1) == world.expected({"site0", "site1", "site2"}, {"site0", "site1"}));
    }
}

TEST_CASE("a round to which too few sites are left is refused at once, and only abandoned") {
    World const world(charter_of(2), 3);
    auto const refused = [&](char const* why, char const* next) {
        for (bool const close : {false, true}) {
            auto const error = test::error_of([&] { world.advance(close); });
            CHECK(error.code() == ExitCode::no_input);
            CHECK(test::says(error, why));
            CHECK(test::says(error, next));
        }
    };
    world.advance();
    for (int phase = 0; phase < 2; ++phase) {
        world.answer();
        world.advance();
    }
    world.answer({"site1", "site2"});
    world.coordinator().admission().remove({"site2"});
    CHECK(world.advance().waiting == std::vector<std::string>{"site1"}); // whose update is enough
    CHECK(test::says(test::error_of([&] { world.advance(true); }), "Wait for more sites"));
    world.coordinator().admission().remove({"site1"});
    refused("it needs update messages from at least 2 sites, but has 1, and no more can come",
            "Abandon the round");
    world.coordinator().admission().accept(
        {hex_text(world.key_of("site1").signing_key().public_key())});
    world.answer({"site2"});
    world.advance();
    world.answer({"site1", "site2"});
    world.coordinator().admission().remove({"site1"});
    refused("it needs unmask messages from at least 2 sites, but has 1", "Abandon the round");
    world.coordinator().abandon();
    auto const lines = world.advance().lines;
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] ==
          "round 2 begins when 2 sites are accepted (the 2 removed sites do not count)");
}

TEST_CASE("a site trains from a copy of the model that it has verified") {
    World const world(charter_of(0), 2);
    world.advance();
    world.answer();
    world.advance();
    auto const own = world.key_of("site0");
    Site const site(*world.federation, own, world.scratch / "local/site0");
    auto const shared = world.federation->global_file(0);
    auto const digest = ModelVector::read(shared).digest();
    auto const copy = site.write_first(1);
    auto other = ModelVector::read(shared);
    other.values[0] += 1;
    other.write(shared, 0);
    CHECK(ModelVector::read(copy).digest() == digest);
    CHECK(test::code_of([&] { site.write_first(1); }) == ExitCode::data);
}

TEST_CASE("a site with another model file, teacher or plug-in than the coordinator's is refused") {
    test::ScratchDir const scratch;
    config::Deck deck;
    deck.model.own["file"] = (scratch / "model.pt2").string();
    deck.distill.teacher = (scratch / "teacher.h5").string();
    write_text_durably(scratch / "model.pt2", "model");
    write_text_durably(scratch / "teacher.h5", "teacher");
    CodeFiles code{
        {"model.name", {(scratch / "own.so").string()}},
        {"model.operators", {(scratch / "own.so").string(), (scratch / "ops.so").string()}}};
    write_text_durably(scratch / "own.so", "own");
    write_text_durably(scratch / "ops.so", "operators");
    Charter charter;
    charter.id = "0123";
    charter.files = files_of(deck, code, read_graph);
    charter = Charter::of_text(charter.text());
    require_same_files(charter, deck, code, read_graph);
    CHECK(keys_of_files(charter) ==
          std::set<std::string>{"distill.teacher", "model.file", "model.name", "model.operators"});
    for (auto const* const name : {"model.pt2", "teacher.h5", "own.so", "ops.so"}) {
        auto const good = read_text(scratch / name);
        write_text_durably(scratch / name, "other");
        auto const error =
            test::error_of([&] { require_same_files(charter, deck, code, read_graph); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, name));
        std::filesystem::remove(scratch / name);
        CHECK(test::code_of([&] { require_same_files(charter, deck, code, read_graph); }) ==
              ExitCode::no_input);
        write_text_durably(scratch / name, good);
    }
    // The same file may lie elsewhere, and libraries count in their order.
    std::filesystem::rename(scratch / "ops.so", scratch / "moved.so");
    code["model.operators"][1] = (scratch / "moved.so").string();
    require_same_files(charter, deck, code, read_graph);
    std::ranges::reverse(code["model.operators"]);
    CHECK(test::code_of([&] { require_same_files(charter, deck, code, read_graph); }) ==
          ExitCode::usage);
    // A charter of an earlier version names none, nor an accountant.
    charter.accountant = "prv";
    auto text = charter.text();
    CHECK(Charter::of_text(text).accountant == "prv");
    for (auto const* const field : {"\"files\"", "\"accountant\""}) {
        auto const at = text.find(field);
        text.erase(at, text.find('\n', at) - at);
    }
    charter = Charter::of_text(text);
    CHECK(charter.files.empty());
    CHECK(charter.accountant == "rdp");
    write_text_durably(scratch / "teacher.h5", "other");
    require_same_files(charter, deck, code, read_graph);
}

TEST_CASE("each site compiles for its own processor, but the same graph") {
    test::ScratchDir const scratch;
    config::Deck deck;
    deck.model.own["file"] = (scratch / "model.pt2").string();
    deck.model.own["compiled"] = "require";
    write_text_durably(scratch / "model.pt2", "graph\nstep of the coordinator");
    Charter charter;
    charter.files = files_of(deck, {}, read_graph);
    CHECK(keys_of_files(charter) == std::set<std::string>{"model.file"});
    write_text_durably(scratch / "model.pt2", "graph\nstep of a site");
    require_same_files(charter, deck, {}, read_graph);
    write_text_durably(scratch / "model.pt2", "other graph\nstep of a site");
    auto const error = test::error_of([&] { require_same_files(charter, deck, {}, read_graph); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "model.pt2 is not the federation's file"));
    charter.files.clear(); // of an earlier version
    require_same_files(charter, deck, {}, read_graph);
}

TEST_CASE("a charter's options are told as they are given") {
    auto charter = charter_of(3);
    charter.server_rate = 0.1;
    charter.budget = 8;
    auto const options = charter.options();
    CHECK(options.at("--secure") == "true");
    CHECK(options.at("--threshold") == "3");
    CHECK(options.at("--server-rate") == "0.1");
    CHECK(options.at("--epsilon") == "8");
    CHECK(options.at("--strategy") == "fedavg");
    CHECK_FALSE(options.contains("--deck"));
}

TEST_CASE("a model that is not the last round's result begins no round") {
    World const world(charter_of(0), 2);
    auto const first = world.federation->global_file(0);
    auto const good = read_text(first);
    auto other = ModelVector::read(first);
    other.values[0] += 1;
    other.write(first, 0);
    auto const error = test::error_of([&] { world.advance(); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "not the model that the federation began with"));
    write_text_durably(first, good);
    world.advance();
    world.answer();
    world.advance();
    world.answer();
    other.write(world.federation->global_file(1), 1); // killed before the result, as it seems
    CHECK(test::code_of([&] { static_cast<void>(world.coordinator().abandon()); }) ==
          ExitCode::usage);
    world.advance();
    CHECK(world.federation->current_round() == 2);
    other.write(world.federation->global_file(1), 1);
    std::filesystem::remove(
        world.federation->file(world.federation->binding(2, phase::plan, coordinator_name)));
    CHECK(test::code_of([&] { world.advance(); }) == ExitCode::data);
}

TEST_CASE("a file that is damaged late is sent again, and a share that comes late is sent on") {
    World const world(charter_of(3), 3);
    auto const file = [&](char const* phase, char const* site) {
        return world.federation->file(world.federation->binding(1, phase, site));
    };
    auto const damage = [](std::filesystem::path const& path) {
        auto bytes = read_text(path);
        bytes[bytes.size() / 2] ^= 1;
        write_text_durably(path, bytes);
    };
    world.advance();
    for (int i = 0; i < 3; ++i) {
        world.answer();
        world.advance();
    }
    damage(file(phase::update, "site1"));
    auto const shares = read_text(file(phase::shares, "site2"));
    std::filesystem::remove(file(phase::shares, "site2"));
    world.answer({"site2"});
    auto const bound = world.federation->binding(1, phase::unmask, "site0");
    auto const sent = [&] {
        return Message::read(file(phase::unmask, "site0"), bound,
                             world.key_of("site0").signing_key().public_key())
            .names()
            .size();
    };
    CHECK(sent() == 2);
    write_text_durably(file(phase::shares, "site2"), shares);
    world.answer();
    CHECK(sent() == 3);
    // Signed by its owner, but without what the coordinator compares shares with.
    Message empty(world.federation->binding(1, phase::shares, "site2"));
    empty.add_octets("commitments", Octets{});
    world.federation->write(empty, world.key_of("site2"));
    CHECK(test::code_of([&] { world.advance(); }) == ExitCode::data);
    write_text_durably(file(phase::shares, "site2"), shares);
    world.advance();
    CHECK(world.federation->current_round() == 2);
    CHECK(world.global(1) ==
          world.expected({"site0", "site1", "site2"}, {"site0", "site1", "site2"}));
}

TEST_CASE("a public key that no secret can be derived from is refused at once") {
    World const world(charter_of(2), 3);
    world.advance();
    world.answer({"site1"});
    Message announce(world.federation->binding(1, phase::announce, "site1"));
    announce.add_octets("share_key", Octets(sizeof(PublicKey), 0));
    announce.add_octets("mask_key", exchange_key(Secret(Digest{}).derived("mask")));
    announce.add_text("samples", "20");
    world.federation->write(announce, world.key_of("site1"));
    CHECK(world.advance().waiting == std::vector<std::string>{"site1"});
}

TEST_CASE("a wrong share is refused, and the round ends right by those of others") {
    World const world(charter_of(2), 3);
    world.advance();
    for (int i = 0; i < 3; ++i) {
        world.answer();
        world.advance();
    }
    auto const liar = world.key_of("site0");
    Message lie(world.federation->binding(1, phase::unmask, "site0"));
    for (auto const& name : world.names) {
        lie.add_octets("of/" + name, Octets(sizeof(Digest), 7));
    }
    world.federation->write(lie, liar);
    world.answer({"site0"});
    auto const progress = world.advance();
    CHECK(std::ranges::count_if(progress.lines, [](std::string const& line) {
              return line.find("that site0 sent was refused") != std::string::npos;
          }) == 3);
    CHECK(world.federation->current_round() == 2);
    CHECK(world.global(1) ==
          world.expected({"site0", "site1", "site2"}, {"site0", "site1", "site2"}));
}

TEST_CASE("noise is the same again, of the size that was asked for, and epsilon stops the rounds") {
    auto charter = charter_of(0);
    charter.clip = 1;
    charter.noise = 2;
    charter.expected_sites = 2;
    charter.rounds = 100;
    charter.budget = 6;
    World const world(charter, 2);
    std::int64_t rounds = 0;
    for (int step = 0; step < 40 && !world.advance().finished; ++step) {
        world.answer();
    }
    auto const told = spent(*world.federation);
    rounds = told.rounds;
    CHECK(rounds >= 2);
    CHECK(told.published <= 6);
    CHECK(spent(*world.federation, 1).published > 6);
    CHECK(told.known == told.published);
    // Both changes are clipped to a norm of 1, so is their mean: the rest is the noise.
    std::vector<double> noise(values, 0);
    add_gaussian_noise(
        noise,
        world.key->secret().derived(concat("noise\n", world.federation->charter().id, " ", 1)),
        charter.noise * charter.clip);
    double squares = 0;
    for (std::size_t i = 0; i < values; ++i) {
        squares += std::pow(world.global(1)[i] - world.global(0)[i] - noise[i] / 2, 2);
    }
    CHECK(squares < 1.01);
    auto const noisy = world.global(1);
    // Repeated from the same files: the same noise.
    std::filesystem::remove(
        world.federation->file(world.federation->binding(rounds, phase::result, coordinator_name)));
    auto const last = world.global(rounds);
    std::filesystem::remove(world.federation->global_file(rounds));
    world.advance();
    CHECK(world.global(rounds) == last);
    CHECK(noisy != world.global(0));
    charter.accountant = "prv";
    World const tighter(charter, 2);
    CHECK(spent(*tighter.federation, rounds).published < told.published);
    CHECK(spent(*tighter.federation, rounds).known < told.known);
}

TEST_CASE("the noise of a round goes into one sum, whatever becomes of the directory") {
    auto charter = charter_of(0);
    charter.clip = 1;
    charter.noise = 2;
    charter.expected_sites = 3;
    World const world(charter, 3);
    auto const file = [&](char const* phase) {
        return world.federation->file(world.federation->binding(1, phase, coordinator_name));
    };
    world.advance();
    for (int step = 0; step < 2; ++step) {
        world.answer();
        world.advance();
    }
    REQUIRE(world.federation->current_round() == 2);
    auto const first = world.global(1);
    auto const list = read_text(file(phase::survivors));
    // As from a backup, or after a kill, at whatever point: the round ends with other updates.
    for (auto const* const lost : {phase::result, phase::survivors}) {
        std::filesystem::remove(file(lost));
    }
    std::filesystem::remove(world.federation->global_file(1));
    std::filesystem::remove(
        world.federation->file(world.federation->binding(1, phase::update, world.names.back())));
    auto const error = test::error_of([&] { world.advance(true); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "already ended with other updates"));
    CHECK_FALSE(std::filesystem::exists(world.federation->global_file(1)));
    // With the same ones it ends with the same bits.
    write_text_durably(file(phase::survivors), list);
    world.answer();
    world.advance();
    CHECK(world.global(1) == first);
}

TEST_CASE("a round whose noisy sum the journal has counts in epsilon, whatever becomes of the "
          "directory") {
    auto charter = charter_of(0);
    charter.clip = 1;
    charter.noise = 2;
    charter.expected_sites = 3;
    World const world(charter, 3);
    auto const& made = *world.federation;
    auto const remove = [&](std::int64_t round, std::vector<char const*> const& phases) {
        for (auto const* const phase : phases) {
            std::filesystem::remove(made.file(made.binding(round, phase, coordinator_name)));
        }
        std::filesystem::remove(made.global_file(round));
    };
    auto const finish_round = [&] {
        for (int step = 0; step < 2; ++step) {
            world.advance();
            world.answer();
        }
        world.advance();
    };
    finish_round();
    REQUIRE(made.current_round() == 2);
    // Somebody puts an older state of the directory back: no sum was made, as it seems.
    remove(1, {phase::result, phase::survivors});
    remove(2, {phase::plan});
    CHECK(world.coordinator().abandon().find("epsilon counts the round") != std::string::npos);
    CHECK(spent(made).rounds == 1);
    CHECK(report(made).find("round 1: abandoned after its sum was made") != std::string::npos);
    CHECK(world.global(1) == world.global(0));
    finish_round();
    CHECK(spent(made).rounds == 2);
    // And the other way round: what was abandoned without a sum gets none.
    World const other(charter, 3);
    other.advance();
    other.coordinator().abandon();
    CHECK(spent(*other.federation).rounds == 0);
    std::filesystem::remove(
        other.federation->file(other.federation->binding(1, phase::result, coordinator_name)));
    other.answer();
    other.advance();
    other.answer();
    auto const error = test::error_of([&] { other.advance(); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "round 1 was already abandoned"));
    CHECK_FALSE(other.federation->current_round() == 2);
    other.coordinator().abandon();
    CHECK(spent(*other.federation).rounds == 0);
}

TEST_CASE("a coordinator whose journal has lost a federation with noise does not continue it") {
    auto charter = charter_of(0);
    charter.clip = 1;
    charter.noise = 2;
    charter.expected_sites = 2;
    World const world(charter, 2);
    std::filesystem::rename(world.scratch / "keys/coordinator.journal", world.scratch / "kept");
    auto const error = test::error_of([&] { world.coordinator(); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "Copy KEY.journal back from a backup"));
    std::filesystem::rename(world.scratch / "kept", world.scratch / "keys/coordinator.journal");
    CHECK(world.advance().waiting.size() == 2);
}

TEST_CASE("a round for which nobody is drawn ends by itself, with noise only, and counts") {
    auto charter = charter_of(GENERATE(std::int64_t{0}, std::int64_t{2}));
    charter.clip = 1;
    charter.noise = 2;
    charter.participation = 1e-9;
    charter.expected_sites = 1000000000; // so that the sum is divided by 1
    World const world(charter, 2);
    auto const progress = world.advance();
    CHECK(progress.finished);
    REQUIRE(progress.lines.size() == 2);
    CHECK(progress.lines[0].find("no site was drawn") != std::string::npos);
    std::vector<double> noise(values, 0);
    auto const use = concat("noise\n", world.federation->charter().id, " ", 1);
    add_gaussian_noise(noise, world.key->secret().derived(use), 2);
    for (std::size_t i = 0; i < values; ++i) {
        CHECK(world.global(1)[i] - world.global(0)[i] == Approx(noise[i]).margin(1e-5));
    }
    CHECK(world.global(2) != world.global(1));
    CHECK(spent(*world.federation).rounds == 2);
    CHECK(spent(*world.federation).known > 0);
    CHECK_FALSE(world.federation->is_abandoned(1));
    CHECK(report(*world.federation).find("round 2: over, with noise only") != std::string::npos);
    // Killed between plan and result, it cannot be abandoned, which would tell, and ends the same.
    auto const model = world.global(2);
    std::filesystem::remove(
        world.federation->file(world.federation->binding(2, phase::result, coordinator_name)));
    CHECK(test::code_of([&] { static_cast<void>(world.coordinator().abandon()); }) ==
          ExitCode::usage);
    CHECK(world.advance().finished);
    CHECK(world.global(2) == model);
}

TEST_CASE("a draw that secure aggregation cannot sum ends the round with noise only") {
    auto charter = charter_of(2);
    charter.clip = 1;
    charter.noise = 2;
    charter.participation = 0.5;
    charter.expected_sites = 2;
    charter.rounds = 12;
    World const world(charter, 2);
    for (std::int64_t step = 0; step < 5 * charter.rounds && !world.advance().finished; ++step) {
        world.answer();
    }
    CHECK(world.advance().finished);
    CHECK(spent(*world.federation).rounds == charter.rounds);
    for (std::int64_t round = 1; round <= charter.rounds; ++round) {
        auto const of = [&](char const* phase, char const* part) {
            return lines_in(world.federation->read_of_coordinator(round, phase).text(part)).size();
        };
        CHECK(of(phase::result, "counted") == (of(phase::plan, "sites") == 2 ? 2U : 0U));
    }
}

TEST_CASE("of many sites those that are drawn take part, and at least as many as a round needs") {
    auto charter = charter_of(0);
    charter.participation = 1e-9;
    World const world(charter, 4);
    world.advance();
    auto const plan = world.federation->read_of_coordinator(1, phase::plan);
    auto const sites = split(plan.text("sites"), '\n');
    CHECK(sites.size() == 2);
    for (int step = 0; step < 3; ++step) {
        world.answer();
        world.advance();
    }
    CHECK(world.federation->current_round() == 2);
    Names const counted(sites.begin(), sites.end());
    CHECK(world.global(1) == world.expected(counted, counted));
}

TEST_CASE("a key's file is for its owner alone") {
    test::ScratchDir const scratch;
    auto const path = scratch / "k";
    auto const key = PrivateKey::open_or_make(path, "anna");
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::mask) ==
          (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
    CHECK(
        std::ranges::equal(PrivateKey::open(path, "anna").secret().bytes(), key.secret().bytes()));
    CHECK(test::code_of([&] { PrivateKey::open(path, "bert"); }) == ExitCode::usage);
    std::filesystem::permissions(path, std::filesystem::perms::group_read,
                                 std::filesystem::perm_options::add);
    CHECK(test::code_of([&] { PrivateKey::open(path, "anna"); }) == ExitCode::usage);
    CHECK(test::code_of([&] { PrivateKey::open(scratch / "none", "anna"); }) == ExitCode::no_input);
    key.promise("f", "update", "aa", 1);
    key.promise("f", "update", "aa", 1);
    key.promise("g", "update", "bb", 1);
    CHECK(test::code_of([&] { key.promise("f", "update", "bb", 1); }) == ExitCode::data);
}

TEST_CASE("damage to the coordinator's own files is not taken for damage to the sites' messages") {
    World const world(charter_of(0), 3);
    world.advance();
    world.answer();
    world.advance();
    world.answer(); // all updates are there
    for (auto const& file :
         {world.federation->file(world.federation->binding(1, phase::plan, coordinator_name)),
          world.federation->file(world.federation->binding(1, phase::roster, coordinator_name)),
          world.federation->global_file(0)}) {
        CAPTURE(file);
        auto const whole = read_text(file);
        auto damaged = whole;
        damaged[damaged.size() - 1] = static_cast<char>(damaged.back() ^ 1);
        write_text_durably(file, damaged);
        auto const error = test::error_of([&] { world.advance(); });
        CHECK(error.code() == ExitCode::data);
        CHECK(error.text().next.find("restore it from a backup") != std::string::npos);
        write_text_durably(file, whole);
    }
    world.advance();
    CHECK(world.federation->current_round() == 2);
}

TEST_CASE("control variates become the mean gradients of sites, whatever they were before") {
    auto charter = charter_of(GENERATE(std::int64_t{0}, std::int64_t{2}));
    charter.strategy = "scaffold";
    World const world(charter, 3);
    REQUIRE(run_round(world, {}));
    auto const after = ModelVector::read(world.federation->global_file(1));
    REQUIRE(after.control.size() == values);
    for (std::size_t i = 0; i < values; ++i) { // all three sites: minus the mean change over rates
        auto const first = ModelVector::read(world.federation->global_file(0)).values[i];
        CHECK(after.control[i] == Approx((first - after.values[i]) / rates).epsilon(1e-5));
    }
    // Each site adds the mean of all less its own.
    auto const correction = ModelVector::read([&] {
        auto const own = world.key_of("site2");
        return Site(*world.federation, own, world.scratch / "local/site2").write_correction(2);
    }());
    auto const own = ModelVector::read(world.scratch / "local/site2/round-0001/control.h5").values;
    for (std::size_t i = 0; i < values; ++i) {
        CHECK(own[i] == Approx(-(0.75 + 0.01 * static_cast<double>(i)) / rates));
        CHECK(correction.values[i] == Approx(after.control[i] - own[i]));
    }
}

TEST_CASE("the coordinator's control variate stays the mean of the sites', whoever takes part") {
    auto charter = charter_of(GENERATE(std::int64_t{0}, std::int64_t{2}));
    charter.strategy = "scaffold";
    charter.rounds = 6;
    World world(charter, 3);
    std::map<std::string, std::pair<double, std::vector<float>>> own; // samples, control variate
    std::int64_t round = 0;
    auto const check_mean = [&](Names const& away, double all) {
        ++round;
        REQUIRE(run_round(world, {.before_announce = away}));
        for (auto const& name : world.names) {
            if (!away.contains(name)) {
                auto const file = world.scratch / "local" / name / round_name(round) / "control.h5";
                own[name] = {static_cast<double>(world.samples_of(name)),
                             ModelVector::read(file).values};
            }
        }
        auto const control = ModelVector::read(world.federation->global_file(round)).control;
        for (std::size_t i = 0; i < values; ++i) {
            double sum = 0;
            for (auto const& [name, each] : own) {
                sum += each.first * static_cast<double>(each.second[i]);
            }
            CHECK(control[i] == Approx(sum / all).epsilon(1e-5));
        }
    };
    check_mean({"site2"}, 45); // it counts as the mean of 10 and 20
    check_mean({"site0"}, 60);
    check_mean({"site2"}, 60);
    world.changed["site1"] = 50;
    check_mean({"site0"}, 90);
    world.coordinator().admission().remove({"site0"});
    check_mean({"site0"}, 90); // its last one stays in the mean
    check_mean({"site0"}, 90);
}

TEST_CASE("a site that did not count keeps its control variate, and the mean moves by its share") {
    auto charter = charter_of(0);
    charter.strategy = "scaffold";
    World const world(charter, 4);
    REQUIRE(run_round(world, {.before_announce = {"site3"}}));
    auto const after = ModelVector::read(world.federation->global_file(1));
    auto const first = ModelVector::read(world.federation->global_file(0));
    CHECK(after.control[0] == Approx(0.75 * (first.values[0] - after.values[0]) / rates));
    auto const own = world.key_of("site3");
    auto const correction = ModelVector::read(
        Site(*world.federation, own, world.scratch / "local/site3").write_correction(2));
    CHECK(correction.values[0] == Approx(after.control[0]));
    std::filesystem::remove(world.scratch / "local/site2/round-0001/control.h5");
    auto const lost = world.key_of("site2");
    CHECK(test::code_of([&] {
              Site(*world.federation, lost, world.scratch / "local/site2").write_correction(2);
          }) == ExitCode::no_input);
}

TEST_CASE("no file of a federation that is a link is read") {
    World const world(charter_of(0), 2);
    world.advance();
    auto const& federation = *world.federation;
    auto const linked = [&](std::filesystem::path const& file, std::function<void()> const& read) {
        read();
        auto const mine = world.scratch / "of-this-user.h5";
        std::filesystem::rename(file, mine);
        std::filesystem::create_symlink(mine, file);
        auto const error = test::error_of(read);
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, concat(file.string(), " was refused")));
        CHECK(test::says(error, "it is a link"));
        std::filesystem::rename(mine, file);
    };
    auto const plan = federation.binding(1, phase::plan, coordinator_name);
    linked(federation.file(plan), [&] { federation.read_of_coordinator(1, phase::plan); });
    linked(federation.global_file(0), [&] { federation.model_before(1); });
    linked(federation.directory() / "charter.h5", [&] { Federation(federation.directory()); });
}

TEST_CASE("no directory in a federation's is a link, and what it leads to stays as it is") {
    auto const place = GENERATE("sites", "global", "rounds", "rounds/0001", "rounds/0001/announce");
    CAPTURE(place);
    World const world(charter_of(0), 2);
    auto const directory = world.federation->directory() / place;
    auto const local = world.scratch / "local-data";
    bool const of_sites = std::string_view(place).ends_with("announce");
    if (of_sites) {
        world.advance();
    }
    if (std::filesystem::exists(directory)) {
        std::filesystem::rename(directory, local);
    } else {
        std::filesystem::create_directories(directory.parent_path());
        std::filesystem::create_directories(local);
    }
    std::filesystem::create_directory_symlink(local, directory);
    auto const mine = local / "site0.h5";
    write_text_durably(mine, "of this user");
    auto const is_refused = [&](std::function<void()> const& work) {
        auto const error = test::error_of(work);
        CHECK(error.code() == ExitCode::cannot_create);
        CHECK(test::says(error, concat(directory.string(), " is a link")));
    };
    auto const newcomer = world.key_of("site7");
    is_refused([&] {
        if (of_sites) {
            world.answer();
        } else if (place == std::string_view("sites")) {
            Site(*world.federation, newcomer, {}).join();
        } else {
            world.advance();
        }
    });
    if (place == std::string_view("sites")) {
        is_refused([&] { world.coordinator().admission().accept({"all"}); });
        is_refused([&] { report(*world.federation); });
    } else if (of_sites) {
        is_refused([&] { world.advance(); });
    }
    CHECK(read_text(mine) == "of this user");
    // The federation's directory itself is named by the user, and may be one.
    std::filesystem::remove(directory);
    std::filesystem::rename(local, directory);
    std::filesystem::create_directory_symlink(world.federation->directory(), world.scratch / "to");
    Federation const linked(world.scratch / "to");
    Coordinator(linked, *world.key).advance(Coordinator::Waiting::for_all);
    CHECK(linked.has(linked.binding(1, phase::plan, coordinator_name)));
}

TEST_CASE("what a model's file says of the data is of its digest, and the first model is the "
          "charter's") {
    World const world(charter_of(0), 2);
    auto const file = world.federation->global_file(0);
    auto const good = read_text(file);
    auto const first = ModelVector::read(file);
    world.advance();
    auto const own = world.key_of("site0");
    Site const site(*world.federation, own, world.scratch / "local/site0");
    auto const refused = [&](char const* why) {
        auto const error = test::error_of([&] { site.write_first(1); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, why));
        CHECK_FALSE(std::filesystem::exists(world.scratch / "local/site0/round-0001/first.h5"));
    };
    auto const resealed = [&](std::function<void(ModelVector&)> const& change) {
        auto other = first;
        change(other);
        other.write(file, 0);
        refused("not the model that the federation began with");
        return other.digest();
    };
    resealed([](auto& model) { model.record().notes["facts"] = "mean 3"; });
    resealed([](auto& model) { model.record().notes["more"] = ""; });
    resealed([](auto& model) { model.record().deck = "[model]"; });
    auto const digest = resealed([](auto& model) { model.values[0] += 1; });
    // A coordinator's plan that names another than the charter, with and without its file.
    auto const bound = world.federation->binding(1, phase::plan, coordinator_name);
    Message plan(bound);
    plan.add_text("sites", "site0\nsite1");
    plan.add_text("accepted", "2");
    plan.add_text("model", digest);
    plan.write(world.federation->file(bound), world.key->signing_key());
    refused("not the model that the federation began with");
    write_text_durably(file, good);
    refused("names another model than the charter");
    // Earlier versions have signed the values alone.
    Digester of_values;
    of_values.add(first.fingerprint()).add(std::as_bytes(std::span(first.values)));
    CHECK(first.has_digest(hex_text(of_values.digest())));
    CHECK(first.has_digest(ModelVector::read(file).digest()));
}

TEST_CASE("an older list of sites, or none any more, is not acted on") {
    auto charter = charter_of(0);
    charter.rounds = 4;
    World const world(charter, 3);
    auto const file =
        world.federation->file(world.federation->binding(0, phase::accepted, coordinator_name));
    auto const older = read_text(file);
    world.advance();
    world.coordinator().admission().remove({"site2"});
    world.answer();
    auto const newer = read_text(file);
    auto const code = [&](bool of_site) { // as a process of its own
        Federation const federation(world.federation->directory());
        auto const own = world.key_of("site0");
        return test::code_of([&] {
            if (of_site) {
                Site(federation, own, world.scratch / "local/site0").proceed(1);
            } else {
                Coordinator(federation, *world.key).advance(Coordinator::Waiting::for_all);
            }
        });
    };
    write_text_durably(file, older);
    auto const error = test::error_of([&] { world.advance(); });
    CHECK(test::says(error, "is version 1 of the list of accepted sites, but version 2 was read"));
    CHECK(code(false) == ExitCode::data);
    CHECK(code(true) == ExitCode::data);
    std::filesystem::remove(file);
    // In the round: the list of a round that has begun is asked for by its plan alone.
    std::filesystem::remove(
        world.federation->file(world.federation->binding(1, phase::plan, coordinator_name)));
    CHECK(code(false) == ExitCode::no_input);
    write_text_durably(file, newer);
    CHECK(code(false) == ExitCode::ok);
    CHECK(code(true) == ExitCode::ok);
    // Lost: the coordinator makes another, which is newer than all.
    std::filesystem::remove(file);
    world.coordinator().admission().accept({"all"});
    CHECK(world.federation->list_version() == 3);
    CHECK(code(false) == ExitCode::ok);
    // Nothing new: no new version.
    world.coordinator().admission().accept({"all"});
    CHECK(world.federation->list_version() == 3);
}

TEST_CASE("a journal is for its owner alone, whatever the umask is") {
    test::ScratchDir const scratch;
    auto const path = scratch / "k";
    auto const key = PrivateKey::open_or_make(path, "anna");
    auto const journal = scratch / "k.journal";
    std::filesystem::remove(journal);
    auto const before = ::umask(0);
    key.promise("f", "update", "aa", 1);
    ::umask(before);
    using std::filesystem::perms;
    auto const mode = [&] { return std::filesystem::status(journal).permissions() & perms::mask; };
    CHECK(mode() == (perms::owner_read | perms::owner_write));
    key.promise("f", "update", "aa", 1);
    for (auto const more : {perms::group_write, perms::others_write}) {
        std::filesystem::permissions(journal, perms::owner_read | perms::owner_write | more);
        auto const error = test::error_of([&] { key.promise("f", "update", "aa", 1); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, "other users may write to it"));
        CHECK(test::code_of([&] { key.promised("f", "coordinator"); }) == ExitCode::usage);
    }
    std::filesystem::rename(journal, scratch / "other");
    std::filesystem::permissions(scratch / "other", perms::owner_read | perms::owner_write);
    std::filesystem::create_symlink(scratch / "other", journal);
    CHECK(test::code_of([&] { key.promise("f", "update", "aa", 1); }) == ExitCode::usage);
}

TEST_CASE("a site's key without its journal, or with another, neither joins again nor answers") {
    World const world(charter_of(2), 3);
    world.advance();
    auto const kept = world.scratch / "keys/site0.journal";
    auto const file = world.scratch / "copy";
    auto const journal = world.scratch / "copy.journal";
    std::filesystem::copy_file(world.scratch / "keys/site0", file);
    auto const copy = PrivateKey::open(file, "site0");
    auto const refused = [&](char const* why) {
        for (bool const joins : {true, false}) {
            auto const error = test::error_of([&] {
                Site const site(*world.federation, copy, world.scratch / "local/copy");
                joins ? site.join() : static_cast<void>(site.proceed(10));
            });
            CHECK(error.code() == ExitCode::usage);
            CHECK(test::says(error, why));
            CHECK(test::says(error, "with a new key"));
        }
    };
    refused("copy.journal) is missing");
    CHECK_FALSE(std::filesystem::exists(journal));
    write_text_durably(journal, "another f\n");
    refused("copy.journal) does not know that this site has joined");
    std::filesystem::copy_file(kept, journal, std::filesystem::copy_options::overwrite_existing);
    Site const site(*world.federation, copy, world.scratch / "local/copy");
    site.join();
    CHECK(site.proceed(10).words.find("announced") != std::string::npos);
}

TEST_CASE("a list of a round's sites says what they have announced, of enough of them") {
    World const world(charter_of(GENERATE(std::int64_t{0}, std::int64_t{2})), 3);
    bool const secure = world.federation->charter().is_secure();
    world.advance();
    world.answer();
    world.advance();
    auto const good = world.federation->roster(1);
    auto const own = world.key_of("site0");
    Site const site(*world.federation, own, world.scratch / "local/site0");
    auto const proceed = [&](Roster const& roster) {
        auto const bound = world.federation->binding(1, phase::roster, coordinator_name);
        std::vector<std::string> names;
        for (auto const& member : roster.members) {
            names.push_back(member.name);
        }
        Message list(bound);
        list.add_text("sites", lines_of(names));
        list.add_text("members", roster.text());
        list.write(world.federation->file(bound), world.key->signing_key());
        return site.proceed(10).words;
    };
    auto const refused = [&](Roster const& roster, std::string const& why) {
        auto const error = test::error_of([&] { proceed(roster); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, why));
    };
    for (auto const place : {std::size_t{0}, std::size_t{1}}) {
        if (place > 0 && !secure) {
            continue; // nothing is hidden by them
        }
        for (auto const key : {&Member::share_key, &Member::mask_key}) {
            auto other = good;
            (other.members[place].*key)[0] ^= 1;
            refused(other, concat("it names other keys, or another number of samples, for site",
                                  place, " than "));
        }
    }
    // Also where the own message is not there to be compared.
    std::filesystem::remove(
        world.federation->file(world.federation->binding(1, phase::announce, "site0")));
    auto other = good;
    other.members[0].mask_key[0] ^= 1;
    refused(other, "for site0");
    auto few = good;
    few.members.resize(1);
    refused(few, "it has 1 site, but needs at least 2");
    auto rest = good;
    rest.members.erase(rest.members.begin());
    CHECK(proceed(rest).find("did not announce itself in time") != std::string::npos);
}

TEST_CASE("a site that a list leaves out although it has sent is told so") {
    World const world(charter_of(0), 3);
    world.advance();
    world.answer();
    world.coordinator().admission().remove({"site2"});
    world.advance();
    world.coordinator().admission().accept(
        {hex_text(world.key_of("site2").signing_key().public_key())});
    auto const own = world.key_of("site2");
    auto const words = Site(*world.federation, own, world.scratch / "local/site2").proceed(1).words;
    CHECK(words.find("roster.h5 does not name this site, although its message is in ") !=
          std::string::npos);
    CHECK(words.find("announce/site2.h5") != std::string::npos);
}

#include "base/gpus.hpp"

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

namespace {

std::vector<Gpu> gpus(int count) {
    std::vector<Gpu> all(static_cast<std::size_t>(count));
    for (int index = 0; index < count; ++index) {
        all[static_cast<std::size_t>(index)].uuid =
            "GPU-" + std::string(1, char('a' + index)) + "0";
    }
    return all;
}

ExitCode refusal(std::string const& devices, int count) {
    return test::error_of([&] { chosen_gpus(devices, gpus(count)); }).code();
}

} // namespace

TEST_CASE("run.devices names all, a count, or which") {
    CHECK(chosen_gpus("all", gpus(3)) == std::vector{0, 1, 2});
    CHECK(chosen_gpus("all", {}).empty());
    CHECK(chosen_gpus("2", gpus(3)) == std::vector{0, 1});
    CHECK(chosen_gpus("2,0", gpus(3)) == std::vector{2, 0});
    CHECK(chosen_gpus(" 2, ", gpus(3)) == std::vector{2});
    CHECK(chosen_gpus("GPU-c", gpus(3)) == std::vector{2});
    CHECK(chosen_gpus("GPU-c0, 1", gpus(3)) == std::vector{2, 1});
}

TEST_CASE("what run.devices cannot mean is refused") {
    CHECK(refusal("4", 3) == ExitCode::unavailable);
    CHECK(refusal("0,3", 3) == ExitCode::unavailable);
    CHECK(refusal("GPU-x", 3) == ExitCode::unavailable);
    CHECK(refusal("1", 0) == ExitCode::unavailable);
    CHECK(refusal("0", 3) == ExitCode::usage);
    CHECK(refusal("-1", 3) == ExitCode::usage);
    CHECK(refusal("two", 3) == ExitCode::usage);
    CHECK(refusal("0,x", 3) == ExitCode::usage);
    CHECK(refusal("1,1", 3) == ExitCode::usage);
    CHECK(refusal("1,GPU-b", 3) == ExitCode::usage);
}

TEST_CASE("a vendor's driver tells what devices there are") {
    Vendor vendor{.kind = "test",
                  .runtime = "Test",
                  .visible = "",
                  .failed = "",
                  .tool = "",
                  .driver = {.libraries = {"libmissing.so", LOCKSTEP_TEST_DRIVER},
                             .version = "test_version",
                             .start = "test_start",
                             .count = "test_count",
                             .device = "test_device",
                             .name = "test_name",
                             .uuid = "test_uuid",
                             .capability = "test_capability",
                             .memory = "test_memory",
                             .bus = "test_bus"}};
    auto const listing = list_gpus(vendor);
    CHECK(listing.kind == "test");
    CHECK(listing.driver == "Test 12.8");
    CHECK(listing.problem.empty());
    REQUIRE(listing.gpus.size() == 2);
    CHECK(listing.gpus[1].name == "Device 11");
    CHECK(listing.gpus[1].uuid == "GPU-0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b");
    CHECK(listing.gpus[1].capability == "9.4");
    CHECK(listing.gpus[1].memory == 11ULL << 30);
    CHECK(listing.gpus[1].bus == "0000:11:00.0");
    CHECK(listing.gpus[1].numa_node == -1);

    vendor.driver.start = "test_no_start";
    auto const silent = list_gpus(vendor);
    CHECK(silent.gpus.empty());
    CHECK_FALSE(silent.problem.empty());
    vendor.driver.libraries = {};
    CHECK(list_gpus(vendor).kind.empty());
}

TEST_CASE("vendors are known by the kind of their devices") {
    CHECK(vendor_of("cuda:1")->runtime == "CUDA");
    CHECK(vendor_of("xpu")->kind == "xpu");
    CHECK(vendor_of("cpu") == nullptr);
    CHECK(vendor_of("") == nullptr);
    CHECK(vendors_text(&Vendor::kind) == "cuda, hip or xpu");
}

TEST_CASE("GPUs are listed, or there are none") {
    auto const listing = list_gpus();
    CHECK((listing.between.empty() ||
           listing.between.size() == listing.gpus.size() * listing.gpus.size()));
    for (auto const& gpu : listing.gpus) {
        CHECK(gpu.uuid.size() == 40);
        CHECK(gpu.memory > 0);
    }
}

#include "monitor/measured_text.hpp"

#include <cmath>

#include "catch.hpp"

using namespace lockstep;
using monitor::measured_text;

TEST_CASE("a few metrics are one line, many a line each, those of classes a table") {
    train::Measured measured{.set = "test", .loss = 0.25, .samples = 10000};
    measured.metrics = {{"accuracy", 0.912}, {"f1", 0.9}};
    CHECK(measured_text(measured) ==
          "test: 10,000 samples, loss 0.250000, accuracy 0.912000, f1 0.900000\n");
    measured.metrics["f1.coat"] = 0.8;
    measured.metrics["f1.mr. t\n"] = 1;
    measured.metrics["iou.coat"] = 0.7;
    CHECK(measured_text(measured) ==
          "test: 10,000 samples, loss 0.250000, accuracy 0.912000, f1 0.900000\n"
          "  class            f1       iou\n"
          "  coat       0.800000  0.700000\n"
          "  mr. t\\x0a  1.000000         -\n");
    measured.metrics = {{"mae.weight", 2}};
    CHECK(measured_text(measured, "target") == "test: 10,000 samples, loss 0.250000\n"
                                               "  target       mae\n"
                                               "  weight  2.000000\n");
    measured.metrics = {
        {"accuracy", 0.912}, {"average-precision", NAN}, {"balanced-accuracy", -1}, {"kappa", 0.5}};
    CHECK(measured_text(measured) == "test: 10,000 samples, loss 0.250000\n"
                                     "           accuracy 0.912000\n"
                                     "  average-precision nan\n"
                                     "  balanced-accuracy -1.000000\n"
                                     "              kappa 0.500000\n");
}

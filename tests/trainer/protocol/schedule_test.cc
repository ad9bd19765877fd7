#include "trainer/protocol/schedule.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

std::vector<std::int64_t> Ends(const Schedule& schedule) {
  std::vector<std::int64_t> ends;
  for (std::int32_t r = 1; r <= schedule.rounds(); ++r)
    ends.push_back(schedule.round(r).last_step());
  return ends;
}

using Steps = std::vector<std::int64_t>;

TEST(Schedule, EveryHStepsAllBlocks) {
  const auto table = MakeTinyTable(2, 2);
  const Schedule schedule({.total_steps = 8, .every = 3}, *table);
  EXPECT_EQ(Ends(schedule), (Steps{3, 6, 8}));
  for (std::int32_t r = 1; r <= 3; ++r) {
    EXPECT_TRUE(schedule.AllExpertsDue(r));
    EXPECT_EQ(schedule.round(r).ahead, 0);
    for (BlockId id = 0; id < table->size(); ++id) EXPECT_TRUE(schedule.IsDue(r, id));
  }
  EXPECT_EQ(Ends(Schedule({.total_steps = 2, .every = 100}, *table)), (Steps{2}));
}

TEST(Schedule, GrowsUpToH) {
  const auto table = MakeTinyTable(1, 2);
  EXPECT_EQ(Ends(Schedule({.total_steps = 40, .every = 10, .first = 2, .growth = 2}, *table)),
            (Steps{2, 6, 14, 24, 34, 40}));
  EXPECT_EQ(Ends(Schedule({.total_steps = 12, .every = 4, .first = 1, .growth = 1.5}, *table)),
            (Steps{1, 2, 4, 7, 11, 12}))
      << "1, 1.5, 2.25, 3.375, then 4";
}

// Each block comes up once in H steps, and all at the end.
TEST(Schedule, FragmentsTakeTurns) {
  const auto table = MakeTinyTable(5, 2);
  const Schedule schedule({.total_steps = 24, .every = 6, .fragments = 3, .overlap = 1}, *table);
  EXPECT_EQ(Ends(schedule), (Steps{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}));
  for (BlockId id = 0; id < table->size(); ++id) {
    Steps due;
    for (std::int32_t r = 1; r < schedule.rounds(); ++r) {
      if (schedule.IsDue(r, id)) due.push_back(schedule.round(r).last_step());
    }
    for (std::size_t i = 1; i < due.size(); ++i) EXPECT_EQ(due[i] - due[i - 1], 6);
    EXPECT_GE(due.size(), 3u);
    EXPECT_TRUE(schedule.IsDue(schedule.rounds(), id));
  }
  for (std::int32_t r = 1; r < schedule.rounds(); ++r) {
    EXPECT_FALSE(schedule.AllExpertsDue(r));
    EXPECT_EQ(schedule.round(r).ahead, 1);
  }
  EXPECT_EQ(schedule.round(schedule.rounds()).ahead, 0) << "nothing follows";
}

TEST(Schedule, OneFragmentWithoutOverlapIsTheOrdinarySchedule) {
  const auto table = MakeTinyTable(2, 2);
  EXPECT_EQ(Ends(Schedule({.total_steps = 9, .every = 3, .fragments = 1, .overlap = 0}, *table)),
            Ends(Schedule({.total_steps = 9, .every = 3}, *table)));
}

TEST(Schedule, ExpertsMayHaveTheirOwnInterval) {
  const auto table = MakeTinyTable(1, 2);  // block 0 shared, 1 and 2 experts
  const Schedule schedule({.total_steps = 12, .every = 2, .experts_every = 6}, *table);
  EXPECT_EQ(Ends(schedule), (Steps{2, 4, 6, 8, 10, 12}));
  for (std::int32_t r = 1; r <= 6; ++r) {
    EXPECT_TRUE(schedule.IsDue(r, 0));
    EXPECT_EQ(schedule.IsDue(r, 1), r % 3 == 0);
    EXPECT_EQ(schedule.AllExpertsDue(r), r % 3 == 0);
  }
  const Schedule faster({.total_steps = 6, .every = 4, .experts_every = 2}, *table);
  EXPECT_EQ(Ends(faster), (Steps{2, 4, 6}));
  EXPECT_FALSE(faster.IsDue(1, 0));
  EXPECT_TRUE(faster.IsDue(1, 1));
  EXPECT_TRUE(faster.IsDue(3, 0)) << "all at the end";
}

TEST(Schedule, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](const ScheduleConfig& config) {
    EXPECT_THROW(Validate(config), std::invalid_argument);
  };
  refused({.total_steps = 0, .every = 1});
  refused({.total_steps = 1, .every = 0});
  refused({.total_steps = 10, .every = 4, .experts_every = 6});
  refused({.total_steps = 10, .every = 4, .fragments = 5});
  refused({.total_steps = 10, .every = 4, .fragments = 2, .overlap = 2});
  refused({.total_steps = 10, .every = 4, .first = 5});
  refused({.total_steps = 10, .every = 4, .first = 2, .growth = 1});
  refused({.total_steps = 10, .every = 4, .first = 2, .fragments = 2});
  EXPECT_NO_THROW(Validate({.total_steps = 10, .every = 4, .fragments = 2, .overlap = 1}));
}

}  // namespace
}  // namespace spes::trainer

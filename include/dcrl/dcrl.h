// dcrl: offline goal-conditioned reinforcement learning, for C and C++ programs. docs/api.md is the tour.
#ifndef DCRL_H
#define DCRL_H

#include <dcrl/dataset.h>
#include <dcrl/env.h>
#include <dcrl/policy.h>
#include <dcrl/status.h>
#include <dcrl/train.h>
#include <dcrl/vec.h>

#endif

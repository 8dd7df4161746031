// The files of a data set: which episodes each of them holds, and making those that are not there.
//
// A set has `episodes` episodes for training, and a tenth as many more for validation, in one pair of
// files or in several (shards):
//
//     STEM.npz      STEM-val.npz
//     STEM-000.npz  STEM-000-val.npz  STEM-001.npz ...
//     STEM.gen.json            of what they are made; of what takes long, and of shards
//     FILE.npz.part-0000 ...   rows of batches of episodes, of what takes long, until FILE.npz is there
//
// A file appears whole or not at all. So a set that was stopped, or crashed, goes on with the first
// file that is not there and with the first batch of it that is not; STEM.gen.json sees to it that
// it is the same set, and that nothing else comes among its files. What a kill left goes with the
// next command. What takes seconds (mazes in one file) is made anew.
#ifndef GEN_SET_H
#define GEN_SET_H

#include "base/text.h"
#include "env/gen.h"

#include <stdint.h>

typedef struct gen_set {
    dc_gen gen;       // world, seed and draws are set
    const char *env;  // name of the environment, for STEM.gen.json
    const char *stem; // path without .npz
    bool named;       // by the user, with its .npz; else it is a name in a folder
    int64_t episodes; // for training
    int shards;
    int threads;       // 0: one for every core
    const char *trace; // also write what a data set does not hold; empty: no
    bool quiet;        // say nothing but warnings
    dc_text *files;    // Nullable: append a JSON object for each file
} gen_set;

// Make what is missing, with a line of progress, and say what was made.
dc_status gen_set_make(gen_set *set);

#endif

// Experts: trained policies of walking robots, as files. `dcrl expert train` writes them, `dcrl gen` lets
// them lead a robot through a maze (env/gen.h). A file is safetensors with float32 tensors alone; its
// metadata say for which robot it is and where it comes from (docs/formats.md).
//
//     x = observation and command -> per layer x = gelu(x w + b), normalised where it has scale and bias
//                                 -> last layer: action = tanh(x w + b)
//
// Walkers are chaotic: one last bit makes another data set. So an expert is evaluated by loops of its own,
// each sum in one order, and by no library whose sums or last bits depend on the machine.
#ifndef DC_EXPERT_H
#define DC_EXPERT_H

#include "base/arena.h"
#include "base/status.h"
#include "data/safetensors.h"

#include <stdbool.h>

enum {
    DC_EXPERT_LAYERS = 8, // at most
    DC_EXPERT_WIDTH = 1024,
};

// For which robot: what it sees and does.
typedef enum dc_expert_kind {
    DC_EXPERT_ANT, // walks: 27 numbers of its state, direction 2 -> 8
    DC_EXPERT_ANTBALL, // dribbles: 13 + 25 of its state and the ball's, ball - ant 2, goal - ball 2 -> 8
    DC_EXPERT_HUMANOID, // walks: 67 of its observation, direction 2 -> 21
    DC_EXPERT_KINDS,
} dc_expert_kind;

typedef struct dc_expert_facts {
    const char *name; // "ant"
    int obs, act;
} dc_expert_facts;

// A row of the list above; by name, DC_EXPERT_KINDS if there is none of it.
const dc_expert_facts *dc_expert_facts_of(dc_expert_kind kind);
dc_expert_kind dc_expert_kind_of(const char *name);

typedef struct dc_expert_layer {
    int in, out;
    const float *w;            // (in, out)
    const float *b;            // (out)
    const float *scale, *bias; // (out) of LayerNorm; both NULL: none. Never of the last layer
} dc_expert_layer;

typedef struct dc_expert {
    dc_expert_kind kind;
    int layer_count;
    dc_expert_layer layers[DC_EXPERT_LAYERS];
    // How it came to be: seed and command of its training, and its scores as a JSON object.
    const char *seed, *command, *scores;
    // Of an expert that was read:
    char hash[DC_ST_HASH];           // of the whole file; names it in what is made with it
    float *packed[DC_EXPERT_LAYERS]; // weights as `act` reads them
    dc_arena arena;                  // owns all of it
} dc_expert;

// Read and check a file. On failure nothing needs closing.
dc_status dc_expert_open(dc_expert *expert, const char *path);
// The same for bytes in memory; `what` names them in errors.
dc_status dc_expert_parse(dc_expert *expert, const char *what, const void *bytes, size_t size);
void dc_expert_close(dc_expert *expert); // safe on a zeroed struct, and twice
// Errors: DC_BAD_INPUT if the expert is another robot's.
dc_status dc_expert_need(const dc_expert *expert, const char *path, dc_expert_kind kind);
// The path of the file that comes with the program. Errors: DC_IO with how to train one, if there is none.
enum { DC_EXPERT_PATH = 4096 };
dc_status dc_expert_find(dc_expert_kind kind, char path[DC_EXPERT_PATH]);

// The action of an observation: obs (obs), action (act) in [-1, 1]. For experts that were read; the same
// bits on every machine with IEEE arithmetic. Many threads may call it at once.
void dc_expert_act(const dc_expert *expert, const float *obs, float *action);

// Write a file; `hash` and `packed` are not read. Layers as above, texts without control characters.
// Errors: DC_BAD_INPUT for what could not be read again, such as weights that are not finite.
dc_status dc_expert_save(const char *path, const dc_expert *expert);

#endif

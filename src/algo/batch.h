// Inputs of a loss: what of the batch's rows a network sees. A method's `rows` draws rows of the data under
// names ("state", "goal"); an input is a list of fields, each the observation, goal or action of such a row,
// side by side:
//
//   dc_ref x = DC_BATCH(a, "critic", OBS("state"), GOAL("goal"), ACT("state"));
//
// is an input (1, batch, obs + goal + act) of the loss graph. Nothing is copied here: each field becomes a feed
// (sample/gather.h), and the gather writes it into the input every step.
#ifndef DC_BATCH_H
#define DC_BATCH_H

#include "algo/agent.h"

typedef enum dc_field_kind {
    DC_FIELD_NONE,   // ends a list
    DC_FIELD_OBS,    // the observation of a row
    DC_FIELD_GOAL,   // the row as a goal: its representation, or its observation if there is none
    DC_FIELD_ACT,    // the action taken there; a discrete one as `actions` columns, one of them 1
    DC_FIELD_STEPS,  // the count of a STEPS rule, one column
    DC_FIELD_COLUMN, // what another array of the data has there, as it is
    DC_FIELD_BLANK,  // zeros, for computed columns that dc_splice puts there
    DC_FIELD_NOISE,  // standard normals, drawn under a name
    DC_FIELD_TIME,   // one number per row, uniform in [0, 1), the same in every column, likewise
    DC_FIELD_CHOICE  // in an input repeated `actions` times: row r * actions + k shows action k
} dc_field_kind;

typedef struct dc_field {
    dc_field_kind kind;
    int width;       // BLANK, NOISE, TIME, COLUMN
    const char *row; // name of a rule (sample/rows.h); NULL in inference: one situation per row
        // NOISE, TIME: of the draw (dc_draw); the same name stands for the same numbers
    const char *column; // COLUMN: name of the array, one that the method needs (dc_algo.needs)
} dc_field;

#define OBS(row)                 ((dc_field){DC_FIELD_OBS, 0, row, NULL})
#define GOAL(row)                ((dc_field){DC_FIELD_GOAL, 0, row, NULL})
#define ACT(row)                 ((dc_field){DC_FIELD_ACT, 0, row, NULL})
#define STEPS(row)               ((dc_field){DC_FIELD_STEPS, 0, row, NULL})
#define COLUMN(row, name, width) ((dc_field){DC_FIELD_COLUMN, width, row, name})
#define BLANK(width)             ((dc_field){DC_FIELD_BLANK, width, NULL, NULL})
#define CHOICE                   ((dc_field){DC_FIELD_CHOICE, 0, NULL, NULL})
#define NOISE(name, width)       ((dc_field){DC_FIELD_NOISE, width, name, NULL})
#define TIME(name, width)        ((dc_field){DC_FIELD_TIME, width, name, NULL})
#define DC_FIELDS(...)           ((const dc_field[]){__VA_ARGS__, {DC_FIELD_NONE, 0, NULL, NULL}})

// Columns that a list of fields takes.
int dc_fields_width(const dc_method *m, const dc_field *fields);
// An input (1, batch, width) of the fields. `name` is for messages; names may repeat.
dc_ref dc_batch_input(dc_agent *a, const char *name, const dc_field *fields);
#define DC_BATCH(a, name, ...) dc_batch_input(a, name, DC_FIELDS(__VA_ARGS__))
// The same with every row `times` times in succession: (1, batch * times, width). A rule that gives so many rows for
// every row of the batch is not repeated: each stands once.
dc_ref dc_batch_repeated(dc_agent *a, const char *name, int times, const dc_field *fields);
// Several parts of one width, one below the other: (1, count * batch, width). So one application of a
// network serves all of them, which is faster; dc_batch_part takes a part of its output.
dc_ref dc_batch_stack(dc_agent *a, const char *name, int count, const dc_field *const *parts);
// Rows of part number `part`, from 0, of a stacked node.
dc_ref dc_batch_part(dc_agent *a, dc_ref x, int part);
// Feed fields into an input that exists, from row row0 on, or into a pack of it; `times` as above. Nullable: pack
void dc_batch_feed(dc_agent *a, dc_ref input, int row0, const dc_field *fields, int times,
                   dc_pack *pack);
// A pack: a part of a stack in which only some rows are needed, those whose count `steps` (name of a STEPS
// rule) exceeds `known`. Only these are fed, without gaps, behind the first fixed_rows rows of `input`, so that
// the network computes fewer rows. Adds an input `name` (1, batch, 1), for dc_unpack: where in the pack each row
// of the batch stands, or -1.
dc_pack *dc_batch_pack(dc_agent *a, dc_ref input, int fixed_rows, const char *name,
                       const char *steps, int known);

// Log a loss as a metric of that name, and add it to the total (-1: it is the first). Returns the sum.
dc_ref dc_batch_loss(dc_agent *a, const char *name, dc_ref total, dc_ref loss);

#endif

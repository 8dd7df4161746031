// Inputs of a loss: columns of the batch's rows, side by side. An input names its fields,
//
//   dc_ref x = DC_BATCH(a, "critic", OBS("state"), GOAL("goal"), ACT("state"));
//
// and the gather writes them there every step.
#ifndef DC_BATCH_H
#define DC_BATCH_H

#include "algo/agent.h"

typedef enum dc_field_kind {
    DC_FIELD_NONE,  // ends a list
    DC_FIELD_OBS,   // the observation of a row
    DC_FIELD_GOAL,  // the row as a goal: its representation, or its observation if there is none
    DC_FIELD_ACT,   // the action taken there; discrete ones as one of `actions` columns
    DC_FIELD_STEPS, // a count, one column
    DC_FIELD_BLANK, // zeros, for what dc_splice puts there
    DC_FIELD_NOISE, // standard normals
    DC_FIELD_TIME,  // one uniform number per row, in every column
    DC_FIELD_CHOICE // every discrete action once: row r * actions + k shows action k
} dc_field_kind;

typedef struct dc_field {
    dc_field_kind kind;
    const char *row; // name of the rule; unused when acting
    int width;       // BLANK, NOISE, TIME
} dc_field;

#define OBS(row)       ((dc_field){DC_FIELD_OBS, row, 0})
#define GOAL(row)      ((dc_field){DC_FIELD_GOAL, row, 0})
#define ACT(row)       ((dc_field){DC_FIELD_ACT, row, 0})
#define STEPS(row)     ((dc_field){DC_FIELD_STEPS, row, 0})
#define BLANK(width)   ((dc_field){DC_FIELD_BLANK, NULL, width})
#define NOISE(width)   ((dc_field){DC_FIELD_NOISE, NULL, width})
#define TIME(width)    ((dc_field){DC_FIELD_TIME, NULL, width})
#define CHOICE         ((dc_field){DC_FIELD_CHOICE, NULL, 0})
#define DC_FIELDS(...) ((const dc_field[]){__VA_ARGS__, {DC_FIELD_NONE, NULL, 0}})

// Columns that a list of fields takes.
int dc_fields_width(const dc_method *m, const dc_field *fields);
// An input (batch, width) of the fields.
dc_ref dc_batch_input(dc_agent *a, const char *name, const dc_field *fields);
#define DC_BATCH(a, name, ...) dc_batch_input(a, name, DC_FIELDS(__VA_ARGS__))
// The same with every row `times` times in a row.
dc_ref dc_batch_repeated(dc_agent *a, const char *name, int times, const dc_field *fields);
// Several parts of one width, one below the other: (count * batch, width). So one application of a
// network serves all of them; dc_rows takes a part of its output.
dc_ref dc_batch_stack(dc_agent *a, const char *name, int count, const dc_field *const *parts);
// Part number `part` of a stacked node.
dc_ref dc_batch_part(dc_agent *a, dc_ref x, int part);
// Feed fields into an input that exists, at a row, or as a pack. Nullable: pack
void dc_batch_feed(dc_agent *a, dc_ref input, int row0, const dc_field *fields, int times,
                   dc_pack *pack);
// A pack of `input` behind its first fixed_rows rows: only rows whose count `steps` exceeds `known`
// are fed. Makes the input of indices.
dc_pack *dc_batch_pack(dc_agent *a, dc_ref input, int fixed_rows, const char *name,
                       const char *steps, int known);

// Add a loss to the total (-1: it is the first), and log it.
dc_ref dc_batch_loss(dc_agent *a, const char *name, dc_ref total, dc_ref loss);

#endif
